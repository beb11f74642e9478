// Bounds that both sides of the wire contract know. What exceeds one is INVALID_ARGUMENT, with the
// bound in the message; nothing is truncated.
#pragma once

#include <cstdint>

namespace cairn {

inline constexpr uint32_t kContractVersion = 1;

// Payload bytes of one Write or Get frame.
inline constexpr uint32_t kFramePayloadBytesMax = 1 << 20;
// A frame's header: token, pieces and their digests.
inline constexpr uint32_t kFrameHeaderBytesMax = 64 << 10;
inline constexpr uint32_t kPiecesPerFrameMax = 1024;
inline constexpr uint32_t kMessageBytesMax = kFramePayloadBytesMax + kFrameHeaderBytesMax;

inline constexpr uint32_t kPromptsPerLookupMax = 256;
// Over all prompts of one Lookup; longer prompts are looked up by keys.
inline constexpr uint32_t kTokensPerCallMax = 256 << 10;
inline constexpr uint32_t kKeysPerLookupMax = 64 << 10;
inline constexpr uint32_t kBlocksPerReserveMax = 4096;
inline constexpr uint32_t kKeysPerGetMax = 4096;
inline constexpr uint32_t kKeysPerDeleteMax = 4096;
inline constexpr uint32_t kKeysPerPinMax = 4096;
inline constexpr uint32_t kKeysPerPullMax = 1024;
inline constexpr uint32_t kKeysPerDescribeMax = 1024;
inline constexpr uint64_t kPinMsMax = uint64_t{7} * 24 * 3600 * 1000;
inline constexpr uint32_t kPartsPerGetMax = 1024;
inline constexpr uint32_t kPiecesPerCommitMax = 16384;
inline constexpr uint32_t kMissingRunsMax = 1024;
inline constexpr uint32_t kReadersPerLeaseMax = 1024;
inline constexpr uint32_t kMismatchesPerEndMax = 64;
inline constexpr uint32_t kWaitMsMax = 10'000;
inline constexpr uint32_t kRequestIdBytes = 16;
inline constexpr uint32_t kNameBytesMax = 256;

}  // namespace cairn
