// Routing policies simulated over a trace (routing/routing_model.h):
//   --trace FILE --capacity BLOCKS [--nodes N] [--policy NAME] [--stale-seconds S]
//   [--lose-batches SHARE] [--routers N] [--seeds N] [--partial] [--source NAME]
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/replay/open_trace.h"
#include "router/policy/policy_registry.h"
#include "tests/bench/eviction/block_trace.h"
#include "tests/bench/routing/routing_model.h"
#include "tests/bench/suites.h"

namespace cairn::bench {

absl::Status RunRoutingSuite(const SuiteOptions& options, JsonReport* report) {
  if (options.trace.empty() || options.capacity == 0) {
    return absl::InvalidArgumentError("routing needs --trace FILE and --capacity BLOCKS");
  }
  const std::string name =
      options.policy.empty() ? std::string(router::kDefaultRoutePolicy) : options.policy;
  const absl::StatusOr<std::unique_ptr<router::RoutePolicy>> policy =
      router::MakeRoutePolicy(name, {});
  if (!policy.ok()) return policy.status();
  absl::StatusOr<std::unique_ptr<replay::TraceReader>> reader = replay::OpenTrace(options.trace);
  if (!reader.ok()) return reader.status();
  const absl::StatusOr<BlockTrace> trace =
      BlockTrace::Read(reader->get(), {.partial = options.partial, .source = options.source});
  if (!trace.ok()) return trace.status();
  if (trace->requests().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(options.trace, ": no request"));
  }
  const RoutingFigures figures = SimulateRouting(*trace, **policy,
                                                 {.nodes = options.nodes,
                                                  .capacity = options.capacity,
                                                  .stale_s = options.stale_seconds,
                                                  .lost_batches = options.lose_batches,
                                                  .routers = options.routers,
                                                  .seeds = options.seeds});
  report->Add("policy", name);
  report->Add("node_tokens_per_second", NodeTokensPerSecond(*trace, options.nodes));
  report->Add("hit", figures.hit);
  report->Add("token_hit", figures.token_hit);
  report->Add("busiest_over_mean", figures.busiest_over_mean);
  report->Add("mean_wait_s", figures.mean_wait_s);
  report->Add("p50_wait_s", figures.p50_wait_s);
  report->Add("p99_wait_s", figures.p99_wait_s);
  return absl::OkStatus();
}

}  // namespace cairn::bench
