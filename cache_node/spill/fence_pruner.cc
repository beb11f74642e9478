#include "cache_node/spill/fence_pruner.h"

namespace cairn::node {

void FencePruner::Step(absl::Time steady) {
  if (steady < next_ || tier_->GetStats().health != DiskTier::Health::kServing) return;
  const uint64_t below = store_->OldestSequence();
  if (below == 0) return;
  next_ = steady + kPause;
  // Should it fail, fences stay that are not needed.
  (void)tier_->PruneFences(below, fences_max_);
}

}  // namespace cairn::node
