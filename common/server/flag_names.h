// Names of flags: which of the known ones a mistyped name was meant to be.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace cairn {

// The candidate with the least edits from `name`, if that is at most a third of its letters (at
// least 2); the first in order among equals.
std::optional<std::string> NearestName(absl::string_view name,
                                       const std::vector<std::string>& candidates);

// The names of all flags of the program, in alphabetical order.
std::vector<std::string> AllFlagNames();

}  // namespace cairn
