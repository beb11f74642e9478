#include "router/service/call_metrics.h"

#include <string>

#include "common/base/check.h"

namespace cairn::router {

CallMetrics::CallMetrics(Metrics* metrics, const Clock* clock) : clock_(clock) {
  constexpr std::array<absl::string_view, kMethodCount> kNames = {"Route", "LookupPrefix",
                                                                  "ReportOutcome", "ListReplicas"};
  for (size_t i = 0; i < kMethodCount; ++i) {
    const std::string name(kNames[i]);
    OfMethod& method = methods_[i];
    for (size_t code = 0; code < kCodeCount; ++code) {
      method.ended[code] = metrics->AddCounter(
          "cairn_router_rpcs_total", "Calls that ended, by method and status code.",
          {{"method", name},
           {"code", absl::StatusCodeToString(static_cast<absl::StatusCode>(code))}});
    }
    method.running = metrics->AddGauge("cairn_router_rpcs_running", "Calls under way, by method.",
                                       {{"method", name}});
    method.seconds =
        metrics->AddHistogram("cairn_router_rpc_seconds", "Time from a call's begin to its end.",
                              LatencyBucketsSeconds(), {{"method", name}});
  }
}

absl::Time CallMetrics::Begin(RouterMethod method) const {
  methods_[static_cast<size_t>(method)].running.Add(1);
  return clock_->SteadyNow();
}

void CallMetrics::End(RouterMethod method, absl::Time begin, absl::StatusCode code) const {
  const OfMethod& of_method = methods_[static_cast<size_t>(method)];
  const auto index = static_cast<size_t>(code);
  CAIRN_CHECK(index < kCodeCount);
  of_method.ended[index].Increment();
  of_method.running.Add(-1);
  of_method.seconds.Observe(absl::ToDoubleSeconds(clock_->SteadyNow() - begin));
}

}  // namespace cairn::router
