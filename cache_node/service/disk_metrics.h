// DiskMetrics: what the disk tier holds, does and suffers, as cairn_disk_* metrics.
//
// Read at scrape through callbacks, which end with this object. Borrows its sources, which must
// outlive it. Made once for a Metrics, by a node that has a disk tier.
#pragma once

#include <vector>

#include "cache_node/store/block_store.h"
#include "cache_node/store/store_counters.h"
#include "cache_node/tiers/disk/disk_tier.h"
#include "common/metrics/metrics.h"

namespace cairn::node {

class DiskMetrics {
 public:
  DiskMetrics(Metrics* metrics, const BlockStore* store, const StoreCounters* counters,
              const DiskTier* tier);

  // For who loads: the time that each block took, from the start of its read.
  Histogram load_seconds() const { return load_seconds_; }

 private:
  void AddSpills(Metrics* metrics, const StoreCounters& counters);
  void AddLoads(Metrics* metrics, const StoreCounters& counters);
  void AddRecovery(Metrics* metrics, const StoreCounters& counters);
  void AddState(Metrics* metrics, const BlockStore* store);
  void AddTier(Metrics* metrics, const DiskTier* tier);

  const Histogram load_seconds_;
  std::vector<CallbackMetric> callbacks_;
};

}  // namespace cairn::node
