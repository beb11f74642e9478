// Bounds of served decode that both sides of the wire contract know. What exceeds one is
// INVALID_ARGUMENT, with the bound in the message, but for requests under way: a node reads no more
// ahead, and the rest waits in the transport.
#pragma once

#include <cstdint>

#include "common/wire/limits.h"

namespace cairn {

inline constexpr uint32_t kDecodeItemsMax = 1024;  // Of one request.
inline constexpr uint32_t kDecodeRowsMax = 4096;   // Of all items of one request.
// Rows of one request (queries, keys and values), and of its answer (output and log-sum-exp). A
// larger batch goes in several requests.
inline constexpr uint32_t kDecodePayloadBytesMax = kFramePayloadBytesMax;
inline constexpr uint32_t kDecodeMessageBytesMax = kMessageBytesMax;  // Either way.
inline constexpr uint32_t kDecodeParametersMax = 64;                  // Of one stream.
inline constexpr uint32_t kDecodeStepsMax = 16;                       // Under way on one stream.
inline constexpr uint32_t kForksMax = 64;
inline constexpr uint32_t kSequencesPerCloseMax = 1024;
inline constexpr uint32_t kSequenceIdleMsMax = 30 * 60 * 1000;

}  // namespace cairn
