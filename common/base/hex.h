// Hexadecimal text of raw bytes, for messages, flags and JSON.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace cairn {

// Lower case, two digits a byte.
std::string ToHex(absl::string_view bytes);

// The bytes that `hex` writes; INVALID_ARGUMENT for an odd length or another character.
absl::StatusOr<std::string> FromHex(absl::string_view hex);

}  // namespace cairn
