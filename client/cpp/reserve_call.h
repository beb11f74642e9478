// One Reserve: its request from a prompt, and its answer, checked, from the node's.
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "client/cpp/namespace_handle.h"
#include "client/cpp/prompt.h"
#include "client/cpp/put_types.h"
#include "client/cpp/write_session.h"

namespace cairn {

class NodeLink;

// Tokens of one Reserve, so that its message stays within kMessageBytesMax.
inline constexpr size_t kTokensPerReserveMax = size_t{192} << 10;

// How many blocks from `first_block` on one Reserve may ask for: within a region, the bounds above
// and `blocks_max`; at least 1. REQUIRES: a prompt with regions, first_block < its blocks.
size_t BlocksOfOneReserve(const NamespaceHandle& name_space, const Prompt& prompt,
                          size_t first_block, size_t blocks_max);

// See CacheNodeClient::Reserve.
absl::StatusOr<WriteSession> ReserveBlocks(NodeLink* link, const NamespaceHandle& name_space,
                                           const Prompt& prompt, size_t first_block, size_t blocks,
                                           const ReserveOptions& options);

}  // namespace cairn
