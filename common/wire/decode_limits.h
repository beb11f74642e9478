// Bounds of served decode that both sides of the wire contract know. What exceeds one is
// INVALID_ARGUMENT, with the bound in the message.
#pragma once

#include <cstdint>

namespace cairn {

inline constexpr uint32_t kDecodeItemsMax = 1024;  // Of one request.
inline constexpr uint32_t kDecodeRowsMax = 4096;   // Of all items of one request.
inline constexpr uint32_t kDecodeMessageBytesMax = 8 << 20;
inline constexpr uint32_t kDecodeParametersMax = 64;  // Of one stream.
inline constexpr uint32_t kDecodeStepsMax = 4;        // Under way on one stream.
inline constexpr uint32_t kForksMax = 64;
inline constexpr uint32_t kSequencesPerCloseMax = 1024;
inline constexpr uint32_t kSequenceIdleMsMax = 30 * 60 * 1000;

}  // namespace cairn
