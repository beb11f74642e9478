#include "common/metrics/call_metrics.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn {

CallMetrics::CallMetrics(absl::string_view prefix, absl::Span<const absl::string_view> methods,
                         Metrics* metrics, const Clock* clock)
    : clock_(clock), methods_(methods.size()) {
  CAIRN_CHECK(metrics != nullptr && clock != nullptr);
  const std::string total = absl::StrCat(prefix, "_rpcs_total");
  const std::string running = absl::StrCat(prefix, "_rpcs_running");
  const std::string seconds = absl::StrCat(prefix, "_rpc_seconds");
  for (size_t i = 0; i < methods.size(); ++i) {
    const std::string name(methods[i]);
    OfMethod& method = methods_[i];
    for (size_t code = 0; code < kCodeCount; ++code) {
      method.ended[code] = metrics->AddCounter(
          total, "Calls that ended, by method and status code.",
          {{"method", name},
           {"code", absl::StatusCodeToString(static_cast<absl::StatusCode>(code))}});
    }
    method.running = metrics->AddGauge(running, "Calls under way, by method.", {{"method", name}});
    method.seconds = metrics->AddHistogram(seconds, "Time from a call's begin to its end.",
                                           LatencyBucketsSeconds(), {{"method", name}});
  }
}

CallMetrics::Call CallMetrics::Begin(size_t method) const {
  CAIRN_CHECK(method < methods_.size());
  methods_[method].running.Add(1);
  return Call(this, method, clock_->SteadyNow());
}

void CallMetrics::Call::End(absl::StatusCode code) {
  const CallMetrics* const metrics = std::exchange(metrics_, nullptr);
  if (metrics == nullptr) return;
  const OfMethod& method = metrics->methods_[method_];
  const auto index = static_cast<size_t>(code);
  CAIRN_CHECK(index < kCodeCount);
  method.ended[index].Increment();
  method.running.Add(-1);
  method.seconds.Observe(absl::ToDoubleSeconds(metrics->clock_->SteadyNow() - start_));
}

}  // namespace cairn
