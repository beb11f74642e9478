// FencePruner: forgets fences that hold nothing back any more, so that clears and retirements do
// not fill the ledger.
//
// A fence is needed as long as a file has a record as old as it. Where more than kFencesMax are
// needed, the oldest give way to one line: what was written before it is not found again after a
// restart. A mover: one thread calls Step. Borrows tier and store, which must outlive it.
#pragma once

#include <cstddef>

#include "absl/time/time.h"
#include "cache_node/store/block_store.h"
#include "cache_node/tiers/disk/disk_tier.h"

namespace cairn::node {

class FencePruner {
 public:
  static constexpr absl::Duration kPause = absl::Seconds(30);
  static constexpr size_t kFencesMax = 65536;

  FencePruner(DiskTier* tier, BlockStore* store, size_t fences_max = kFencesMax)
      : tier_(tier), store_(store), fences_max_(fences_max) {}

  // Does nothing before kPause has passed, or while blocks are being found.
  void Step(absl::Time steady);

 private:
  DiskTier* const tier_;
  BlockStore* const store_;
  const size_t fences_max_;
  absl::Time next_ = absl::InfinitePast();
};

}  // namespace cairn::node
