// LocalMetrics: the local socket as cairn_local_*. Borrows all; they outlive it.
#pragma once

#include <vector>

#include "cache_node/local/local_counters.h"
#include "cache_node/local/staging_area.h"
#include "cache_node/store/block_store.h"
#include "common/metrics/metrics.h"

namespace cairn::node {

class LocalMetrics {
 public:
  LocalMetrics(Metrics* metrics, const BlockStore* store, const LocalCounters* counters,
               const StagingBudget* staging);

 private:
  std::vector<CallbackMetric> callbacks_;
};

}  // namespace cairn::node
