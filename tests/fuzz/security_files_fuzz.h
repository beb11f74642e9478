// One fuzz input for the files that say who may call, and what all share: byte 0 chooses access
// file, token file or list of public prefixes, the rest is its text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

// The entry that libFuzzer calls, and the replay test where there is no libFuzzer. Aborts on a
// broken promise of a parser.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace cairn::testing {

enum class SecurityFile : uint8_t { kAccess, kTokens, kPublicPrefixes };

inline constexpr int kSecurityFiles = 3;

std::string SecurityFuzzInput(SecurityFile file, absl::string_view text);
// Whether the text parses; the promises are held against it either way.
bool ParsesAsSecurityFile(SecurityFile file, absl::string_view text);

}  // namespace cairn::testing
