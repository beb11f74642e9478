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
  const DiskTier::Health health = tier_->GetStats().health;
  store_->SetDiskHealth(health);
  if (health == DiskTier::Health::kServing) RetrySpills(steady);
}

// A tier that serves may have been out since the last step: nothing but what waits says so.
void HealthProbe::RetrySpills(absl::Time steady) {
  if (steady < next_spill_) return;
  if (!store_->RetrySpills()) {
    spill_pause_ = kPauseMin;
    return;
  }
  next_spill_ = steady + spill_pause_;
  spill_pause_ = std::min(2 * spill_pause_, kPauseMax);
}

}  // namespace cairn::node
