#include "tests/bench/routing/node_cache.h"

#include <algorithm>

#include "common/base/check.h"

namespace cairn::bench {

NodeCache::NodeCache(uint32_t blocks, uint32_t capacity) : capacity_(capacity), links_(blocks) {
  CAIRN_CHECK(capacity > 0);
}

uint32_t NodeCache::Match(absl::Span<const Block> path) const {
  uint32_t hits = 0;
  while (hits < path.size() && links_[path[hits]].held) ++hits;
  return hits;
}

void NodeCache::Use(absl::Span<const Block> path) {
  for (size_t i = std::min<size_t>(path.size(), capacity_); i-- > 0;) {
    const Block block = path[i];
    if (links_[block].held) {
      Unlink(block);
    } else if (held_ >= capacity_) {
      const Block gone = oldest_;
      Unlink(gone);
      links_[gone].held = false;
    } else {
      ++held_;
    }
    PutNewest(block);
  }
}

void NodeCache::Unlink(Block block) {
  Link& link = links_[block];
  (link.older == kEnd ? oldest_ : links_[link.older].newer) = link.newer;
  (link.newer == kEnd ? newest_ : links_[link.newer].older) = link.older;
}

void NodeCache::PutNewest(Block block) {
  Link& link = links_[block];
  link = {.older = newest_, .newer = kEnd, .held = true};
  (newest_ == kEnd ? oldest_ : links_[newest_].newer) = block;
  newest_ = block;
}

}  // namespace cairn::bench
