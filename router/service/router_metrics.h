// RouterMetrics: the core's counters and state as metrics.
//
// Values are read at each scrape, while this object lives. Thread-safe. Borrows its arguments,
// which must outlive it.
#pragma once

#include <vector>

#include "common/metrics/metrics.h"
#include "router/core/router_core.h"
#include "router/decisions/decision_recorder.h"
#include "router/service/router_calls.h"

namespace cairn::router {

class RouterMetrics {
 public:
  // `recorder` may be null.
  RouterMetrics(Metrics* metrics, RouterCore* core, const RouterCalls::Followers* followers,
                const DecisionRecorder* recorder = nullptr);

 private:
  void AddCounters(Metrics* metrics, const RouterCore* core);
  void AddState(Metrics* metrics, RouterCore* core);
  void AddFeeds(Metrics* metrics, const RouterCalls::Followers* followers);
  void AddRecording(Metrics* metrics, const DecisionRecorder* recorder);

  std::vector<CallbackMetric> callbacks_;
};

}  // namespace cairn::router
