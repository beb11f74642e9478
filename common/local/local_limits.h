// Bounds of the socket between a node and the clients of its host (proto/cairn/v1/local.proto).
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace cairn {

// One packet, either way: fits into a socket's buffer of the kernel's default size.
inline constexpr size_t kLocalPacketBytesMax = 128 << 10;
// Memory segments whose descriptors one answer brings, two each.
inline constexpr size_t kLocalSegmentsPerAnswerMax = 8;
inline constexpr size_t kLocalDescriptorsPerPacketMax = 2 * kLocalSegmentsPerAnswerMax;
inline constexpr size_t kLocalKeysPerReadMax = 256;
// Digests of one answer, but for a block that has more by itself; those are read over the channel.
inline constexpr size_t kLocalDigestsPerAnswerMax = 12288;
static_assert(kLocalDigestsPerAnswerMax * 8 + kLocalKeysPerReadMax * 64 < kLocalPacketBytesMax);
// Shares that one connection reads in place at once.
inline constexpr size_t kLocalSharesMax = 1024;
// Staging memory of one connection.
inline constexpr uint64_t kLocalStagingBytesMax = uint64_t{64} << 20;
// Unused for so long, the node takes it back; a client asks anew before that.
inline constexpr absl::Duration kLocalStagingIdle = absl::Seconds(2);
inline constexpr size_t kLocalPiecesPerPutMax = 1024;
inline constexpr size_t kLocalTicketBytes = 16;

}  // namespace cairn
