// The lines of a small configuration file that mean something. No state; thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace cairn {

// Larger files are refused.
inline constexpr size_t kSecurityFileBytesMax = size_t{1} << 20;

// Calls `take` for each line that is not empty without its comment and the space around it. Not OK:
// INVALID_ARGUMENT naming `file` and the line before what the first failing call said, or that the
// text is too large or holds bytes that no text has.
absl::Status ForEachLine(absl::string_view text, absl::string_view file,
                         absl::FunctionRef<absl::Status(absl::string_view line)> take);

// The fields of a line, between spaces and tabs.
std::vector<absl::string_view> FieldsOf(absl::string_view line);

// Printable ASCII for a message, cut: what a file holds by mistake may be a secret.
std::string Shown(absl::string_view field);

}  // namespace cairn
