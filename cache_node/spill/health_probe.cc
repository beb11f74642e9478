#include "cache_node/spill/health_probe.h"

#include <algorithm>

namespace cairn::node {

void HealthProbe::Step(absl::Time steady) {
  if (tier_->GetStats().health == DiskTier::Health::kServing) {
    pause_ = kPauseMin;
    next_try_ = absl::InfinitePast();
  } else if (steady >= next_try_) {
    // What came of it is in the tier's health.
    (void)tier_->Probe();
    next_try_ = steady + pause_;
    pause_ = std::min(2 * pause_, kPauseMax);
  }
  store_->SetDiskHealth(tier_->GetStats().health);
}

}  // namespace cairn::node
