#include "tests/bench/routing/route_query.h"

#include <algorithm>

#include "common/identity/rendezvous.h"

namespace cairn::bench {

std::optional<uint64_t> PrefixHashOf(absl::Span<const BlockTrace::Block> path, uint64_t seed) {
  if (path.empty()) return std::nullopt;
  const size_t hashed = std::min(path.size(), kRendezvousBlocks);
  return BlockTrace::KeyOf(path[hashed - 1]) ^ seed;
}

}  // namespace cairn::bench
