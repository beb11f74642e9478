// LineLog: where a program's lines for people go. Called on several threads, with no lock held.
#pragma once

#include <functional>

#include "absl/strings/string_view.h"

namespace cairn {

using LineLog = std::function<void(absl::string_view line)>;

// Lines to stderr, each with the program's name before it and in one write, so that those of
// several threads do not mix.
LineLog StderrLog(absl::string_view program);

}  // namespace cairn
