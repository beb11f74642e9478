// Frames: how fields are laid out where a hash covers more than one of them, and the checks on
// those fields. An empty field is framed too, so that no two lists of fields have the same bytes.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace cairn {

// Strings and raw bytes that enter an identity.
inline constexpr size_t kFieldBytesMax = 256;

// Appends `value` in little endian.
void AppendU32(std::string* out, uint32_t value);

// Appends u32le tag || u32le length || bytes. REQUIRES: bytes.size() fits a u32.
void AppendFramed(std::string* out, uint32_t tag, absl::string_view bytes);

// Whether `text` is well-formed UTF-8 (no overlong forms, no surrogates, nothing past U+10FFFF).
bool IsUtf8(absl::string_view text);

// OK for well-formed UTF-8 of at most kFieldBytesMax bytes, else INVALID_ARGUMENT naming `field`.
absl::Status ValidateStringField(absl::string_view field, absl::string_view value);

// OK for at most kFieldBytesMax bytes, else INVALID_ARGUMENT naming `field`.
absl::Status ValidateRawField(absl::string_view field, absl::string_view value);

}  // namespace cairn
