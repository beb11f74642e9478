#include "cache_node/store/failed_loads.h"

namespace cairn::node {

void FailedLoads::Add(const ParentId& block, absl::Time until) {
  const auto [it, added] = until_.insert_or_assign(block, until);
  if (!added) return;
  if (ring_.size() < kEntriesMax) {
    ring_.push_back(block);
    return;
  }
  // What is overwritten may have been forgotten and added again since: it is then forgotten early.
  until_.erase(ring_[next_]);
  ring_[next_] = block;
  next_ = (next_ + 1) % kEntriesMax;
}

bool FailedLoads::Contains(const ParentId& block, absl::Time now) const {
  if (until_.empty()) return false;
  auto it = until_.find(block);
  return it != until_.end() && now < it->second;
}

}  // namespace cairn::node
