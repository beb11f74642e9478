// NodeMetrics: the store's counters and state, and the admission's, as cairn_node_* metrics.
//
// Read at scrape through callbacks, which end with this object. Borrows its sources, which must
// outlive it. Made once for a Metrics.
#pragma once

#include <vector>

#include "cache_node/service/in_flight_bytes.h"
#include "cache_node/store/block_store.h"
#include "cache_node/store/store_counters.h"
#include "cache_node/tenants/tenant_rates.h"
#include "common/metrics/metrics.h"

namespace cairn::node {

class NodeMetrics {
 public:
  NodeMetrics(Metrics* metrics, const BlockStore* store, const StoreCounters* counters,
              const InFlightBytes* in_flight, const TenantRates* rates);

 private:
  void AddCounters(Metrics* metrics, const StoreCounters* counters);
  void AddState(Metrics* metrics, const BlockStore* store);
  void AddRefusals(Metrics* metrics, const StoreCounters* counters, const TenantRates* rates);
  void AddAdmission(Metrics* metrics, const InFlightBytes* in_flight);
  void AddHitRates(Metrics* metrics, const BlockStore* store);

  std::vector<CallbackMetric> callbacks_;
};

}  // namespace cairn::node
