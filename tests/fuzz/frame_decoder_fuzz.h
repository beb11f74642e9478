// One fuzz input for the frame decoder.
#pragma once

#include <cstddef>
#include <cstdint>

// The entry that libFuzzer calls, and the replay test where there is no libFuzzer. Aborts on a
// broken promise of the decoder. Byte 0 is the kind of frame (lowest bit), bytes 1 and 2 seed the
// cut into slices; the rest is the message.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace cairn::testing {

// Bytes of an input before its message.
inline constexpr size_t kFuzzPrefixBytes = 3;

}  // namespace cairn::testing
