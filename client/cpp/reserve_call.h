// One Reserve: its request from a prompt, and its answer, checked, from the node's.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cpp/namespace_handle.h"
#include "client/cpp/prompt.h"
#include "client/cpp/put_types.h"
#include "client/cpp/write_session.h"
#include "common/base/bytes16.h"

namespace cairn {

class NodeLink;

// Tokens of one Reserve, so that its message stays within kMessageBytesMax.
inline constexpr size_t kTokensPerReserveMax = size_t{192} << 10;

// How many blocks from `first_block` on one Reserve may ask for: within a region, the bounds above
// and `blocks_max`; at least 1. In a region of the tenant `public`, where a node wants each reserve
// to end a listed prefix, up to the next of PublicEndsOf, whatever `blocks_max` says. REQUIRES: a
// prompt with regions, first_block < its blocks.
size_t BlocksOfOneReserve(const NamespaceHandle& name_space, const Prompt& prompt,
                          size_t first_block, size_t blocks_max);

// Where reserves of the prompt's public regions end: the keys that a node's list of public prefixes
// holds for it. One a region, but for very long ones.
std::vector<BlockKey> PublicEndsOf(const NamespaceHandle& name_space, const Prompt& prompt);

// See CacheNodeClient::Reserve.
absl::StatusOr<WriteSession> ReserveBlocks(NodeLink* link, const NamespaceHandle& name_space,
                                           const Prompt& prompt, size_t first_block, size_t blocks,
                                           const ReserveOptions& options);

}  // namespace cairn
