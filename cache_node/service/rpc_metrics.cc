#include "cache_node/service/rpc_metrics.h"

#include <string>

#include "common/base/check.h"

namespace cairn::node {
namespace {

constexpr std::array<absl::string_view, kRpcMethodCount> kNames = {"RegisterNamespace",
                                                                   "RetireNamespace",
                                                                   "ClearScope",
                                                                   "PurgeWriter",
                                                                   "Lookup",
                                                                   "GetLease",
                                                                   "RenewLease",
                                                                   "EndLease",
                                                                   "Get",
                                                                   "Reserve",
                                                                   "Write",
                                                                   "Commit",
                                                                   "Abort",
                                                                   "ReportMismatch",
                                                                   "Delete",
                                                                   "PinBlocks",
                                                                   "WatchBlocks",
                                                                   "Describe",
                                                                   "unknown"};

}  // namespace

absl::string_view RpcMethodName(RpcMethod method) { return kNames[static_cast<size_t>(method)]; }

RpcMetrics::RpcMetrics(Metrics* metrics, const Clock* clock) : clock_(clock) {
  for (size_t i = 0; i < kRpcMethodCount; ++i) {
    const std::string name(kNames[i]);
    OfMethod& method = methods_[i];
    for (size_t code = 0; code < kCodeCount; ++code) {
      method.ended[code] = metrics->AddCounter(
          "cairn_node_rpcs_total", "Calls that ended, by method and status code.",
          {{"method", name},
           {"code", absl::StatusCodeToString(static_cast<absl::StatusCode>(code))}});
    }
    method.running = metrics->AddGauge("cairn_node_rpcs_running", "Calls under way, by method.",
                                       {{"method", name}});
    method.seconds =
        metrics->AddHistogram("cairn_node_rpc_seconds", "Time from a call's begin to its end.",
                              LatencyBucketsSeconds(), {{"method", name}});
  }
}

RpcMetrics::Call RpcMetrics::Begin(RpcMethod method) {
  methods_[static_cast<size_t>(method)].running.Add(1);
  return Call(this, method, clock_->SteadyNow());
}

void RpcMetrics::Call::End(absl::StatusCode code) {
  RpcMetrics* const metrics = std::exchange(metrics_, nullptr);
  if (metrics == nullptr) return;
  OfMethod& method = metrics->methods_[static_cast<size_t>(method_)];
  const auto index = static_cast<size_t>(code);
  CAIRN_CHECK(index < kCodeCount);
  method.ended[index].Increment();
  method.running.Add(-1);
  method.seconds.Observe(absl::ToDoubleSeconds(metrics->clock_->SteadyNow() - start_));
}

}  // namespace cairn::node
