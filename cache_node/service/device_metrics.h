// DeviceMetrics: what the device holds, does and suffers, as cairn_device_* metrics.
//
// Read at scrape through callbacks, which end with this object. Borrows its sources, which must
// outlive it. Made once for a Metrics, by a node that has a device.
#pragma once

#include <vector>

#include "cache_node/store/block_store.h"
#include "cache_node/store/store_counters.h"
#include "cache_node/tiers/device/device_tier.h"
#include "common/metrics/metrics.h"

namespace cairn::node {

class DeviceMetrics {
 public:
  DeviceMetrics(Metrics* metrics, const BlockStore* store, const StoreCounters* counters,
                const DeviceTier* tier);

 private:
  void AddMoves(Metrics* metrics, const StoreCounters& counters);
  void AddState(Metrics* metrics, const BlockStore* store);
  void AddTier(Metrics* metrics, const DeviceTier* tier);

  std::vector<CallbackMetric> callbacks_;
};

}  // namespace cairn::node
