// NodeCache: the cache of one simulated node: so many blocks, the least recently used leave first,
// of one request's blocks the deepest. A request's first `capacity` blocks are touched from the
// last to the first, so that parents stay younger than their children.
//
// Of blocks by number (BlockTrace). Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "tests/bench/eviction/block_trace.h"

namespace cairn::bench {

class NodeCache {
 public:
  using Block = BlockTrace::Block;

  // Of blocks numbered below `blocks`. REQUIRES: capacity > 0.
  NodeCache(uint32_t blocks, uint32_t capacity);

  bool Holds(Block block) const { return links_[block].held; }
  // Leading blocks of the path that are there.
  uint32_t Match(absl::Span<const Block> path) const;
  void Use(absl::Span<const Block> path);

 private:
  static constexpr Block kEnd = BlockTrace::kNone;
  struct Link {
    Block older = kEnd;
    Block newer = kEnd;
    bool held = false;
  };

  void Unlink(Block block);
  void PutNewest(Block block);

  const uint32_t capacity_;
  uint32_t held_ = 0;
  Block oldest_ = kEnd;
  Block newest_ = kEnd;
  std::vector<Link> links_;
};

}  // namespace cairn::bench
