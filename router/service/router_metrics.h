// RouterMetrics: the core's counters and state as metrics.
//
// Values are read at each scrape, while this object lives. Thread-safe. Borrows its arguments,
// which must outlive it.
#pragma once

#include <vector>

#include "common/metrics/metrics.h"
#include "router/core/router_core.h"
#include "router/decisions/decision_recorder.h"
#include "router/explain/changing_starts.h"
#include "router/membership/member_source.h"
#include "router/service/node_followers.h"

namespace cairn::router {

class RouterMetrics {
 public:
  // `members` and `recorder` may be null.
  RouterMetrics(Metrics* metrics, RouterCore* core, const NodeFollowers* followers,
                const ChangingStarts* changing_starts, const MemberSource* members = nullptr,
                const DecisionRecorder* recorder = nullptr);

 private:
  void AddCounters(Metrics* metrics, const RouterCore* core);
  void AddState(Metrics* metrics, RouterCore* core);
  void AddFeeds(Metrics* metrics, const NodeFollowers* followers);
  void AddMembers(Metrics* metrics, const MemberSource* members);
  void AddChangingStarts(Metrics* metrics, const ChangingStarts* changing_starts);
  void AddRecording(Metrics* metrics, const DecisionRecorder* recorder);

  std::vector<CallbackMetric> callbacks_;
};

}  // namespace cairn::router
