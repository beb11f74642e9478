#include "tests/bench/routing/ideal_misses.h"

#include <algorithm>
#include <vector>

namespace cairn::bench {

uint64_t IdealMissTokens(const BlockTrace& trace) {
  // With room for all blocks, which are seen before exactly when their numbers are low.
  uint64_t missing = 0;
  BlockTrace::Block seen = 0;
  std::vector<BlockTrace::Block> path;
  for (const BlockTrace::Request& request : trace.requests()) {
    trace.PathOf(request, &path);
    uint32_t hits = 0;
    while (hits < path.size() && path[hits] < seen) ++hits;
    for (const BlockTrace::Block block : path) seen = std::max(seen, block + 1);
    missing += request.tokens - trace.TokensOf(request, hits);
  }
  return missing;
}

}  // namespace cairn::bench
