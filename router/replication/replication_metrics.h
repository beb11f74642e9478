// ReplicationMetrics: what copies of hot prefixes amount to, as metrics. Values are read at each
// scrape, while this object lives. Borrows its arguments, which outlive it.
#pragma once

#include <vector>

#include "common/metrics/metrics.h"
#include "router/replication/replicator.h"

namespace cairn::router {

class ReplicationMetrics {
 public:
  ReplicationMetrics(Metrics* metrics, const Replicator* replicator);

 private:
  std::vector<CallbackMetric> callbacks_;
};

}  // namespace cairn::router
