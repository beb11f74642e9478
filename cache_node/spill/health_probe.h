// HealthProbe: tells the store how the disk tier is, and takes a full or failing one in again; of
// one that serves, what could not be written before is tried again.
//
// A mover: one thread calls Step, every few tens of milliseconds. Borrows tier and store, which
// must outlive it.
#pragma once

#include "absl/time/time.h"
#include "cache_node/store/block_store.h"
#include "cache_node/tiers/disk/disk_tier.h"

namespace cairn::node {

class HealthProbe {
 public:
  // From one try to the next, of the probe and of failed writes: doubled from the first to the
  // second bound.
  static constexpr absl::Duration kPauseMin = absl::Milliseconds(100);
  static constexpr absl::Duration kPauseMax = absl::Seconds(5);

  HealthProbe(DiskTier* tier, BlockStore* store) : tier_(tier), store_(store) {}

  void Step(absl::Time steady);

 private:
  void RetrySpills(absl::Time steady);

  DiskTier* const tier_;
  BlockStore* const store_;
  absl::Duration pause_ = kPauseMin;
  absl::Time next_try_ = absl::InfinitePast();
  absl::Duration spill_pause_ = kPauseMin;
  absl::Time next_spill_ = absl::InfinitePast();
};

}  // namespace cairn::node
