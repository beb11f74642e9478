// Routing policies simulated over a trace.
//
// Prefill only (routing/routing_model.h):
//   --trace FILE --capacity BLOCKS [--nodes N] [--policy NAME] [--stale-seconds S]
//   [--lose-batches SHARE] [--routers N] [--seeds N] [--partial] [--source NAME]
// With answers, a KV limit and two speeds (routing/decode_model.h): --model decode, and
//   [--load SHARE] [--slow-share SHARE] [--slow-speed FACTOR] [--kv-tokens N]
//   [--slo-ttft-seconds S] [--slo-tpot-ms MS]; one router, which sees caches as they are.
// --policy all runs each listed policy; its figures are under NAME_..., those without a name are
// the default's, and `rivals` says how many are better than that (routing/rivals.h).
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/replay/open_trace.h"
#include "router/policy/policy_registry.h"
#include "tests/bench/eviction/block_trace.h"
#include "tests/bench/routing/decode_model.h"
#include "tests/bench/routing/rivals.h"
#include "tests/bench/routing/routing_model.h"
#include "tests/bench/suites.h"

namespace cairn::bench {
namespace {

constexpr absl::string_view kAll = "all";
constexpr absl::string_view kPrefillModel = "prefill";
constexpr absl::string_view kDecodeModel = "decode";
constexpr double kMillisecondsASecond = 1000;

// What a model gives for one policy: what rivals are told by, and what else is said of each policy
// where all are run.
struct Outcome {
  PolicyResult result;
  double busiest_over_mean = 0;
  double goodput_per_second = 0;  // Of the model with answers.
};

absl::StatusOr<BlockTrace> ReadTrace(const SuiteOptions& options) {
  absl::StatusOr<std::unique_ptr<replay::TraceReader>> reader = replay::OpenTrace(options.trace);
  if (!reader.ok()) return reader.status();
  absl::StatusOr<BlockTrace> trace =
      BlockTrace::Read(reader->get(), {.partial = options.partial, .source = options.source});
  if (trace.ok() && trace->requests().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(options.trace, ": no request"));
  }
  return trace;
}

class Model {
 public:
  virtual ~Model() = default;
  // What its p99 is of, after the policy's name.
  virtual absl::string_view p99_key() const = 0;
  virtual void AddShared(JsonReport* report) const = 0;
  // Adds all figures to the report, unless that is null.
  virtual Outcome Run(const router::RoutePolicy& policy, JsonReport* report) const = 0;
};

class PrefillModel final : public Model {
 public:
  PrefillModel(const BlockTrace* trace, const SuiteOptions& options)
      : trace_(*trace),
        options_{.nodes = options.nodes,
                 .capacity = options.capacity,
                 .stale_s = options.stale_seconds,
                 .lost_batches = options.lose_batches,
                 .routers = options.routers,
                 .seeds = options.seeds} {}

  absl::string_view p99_key() const override { return "p99_wait_s"; }
  void AddShared(JsonReport* report) const override {
    report->Add("node_tokens_per_second", NodeTokensPerSecond(trace_, options_.nodes));
  }
  Outcome Run(const router::RoutePolicy& policy, JsonReport* report) const override {
    const RoutingFigures figures = SimulateRouting(trace_, policy, options_);
    if (report != nullptr) {
      report->Add("hit", figures.hit);
      report->Add("token_hit", figures.token_hit);
      report->Add("busiest_over_mean", figures.busiest_over_mean);
      report->Add("mean_wait_s", figures.mean_wait_s);
      report->Add("p50_wait_s", figures.p50_wait_s);
      report->Add("p99_wait_s", figures.p99_wait_s);
    }
    return {.result = {std::string(policy.name()), figures.hit, figures.p99_wait_s},
            .busiest_over_mean = figures.busiest_over_mean};
  }

 private:
  const BlockTrace& trace_;
  const RoutingOptions options_;
};

class DecodeModel final : public Model {
 public:
  DecodeModel(const BlockTrace* trace, const SuiteOptions& options)
      : trace_(*trace), options_(OptionsFrom(options)) {}

  static DecodeOptions OptionsFrom(const SuiteOptions& options) {
    DecodeOptions decode;
    decode.nodes = options.nodes;
    decode.capacity = options.capacity;
    decode.load = options.load;
    decode.slow_share = options.slow_share;
    decode.slow_speed = options.slow_speed;
    decode.kv_tokens_max = options.kv_tokens;
    decode.slo_ttft_s = options.slo_ttft_seconds;
    decode.slo_tpot_s = options.slo_tpot_ms / kMillisecondsASecond;
    decode.seeds = options.seeds;
    return decode;
  }

  absl::string_view p99_key() const override { return "ttft_p99_s"; }
  void AddShared(JsonReport* report) const override {
    report->Add("model_seconds_per_trace_second", DecodeClock(trace_, options_));
  }
  Outcome Run(const router::RoutePolicy& policy, JsonReport* report) const override {
    const DecodeFigures figures = SimulateDecode(trace_, policy, options_);
    if (report != nullptr) {
      report->Add("ttft_mean_s", figures.ttft_mean_s);
      report->Add("ttft_p50_s", figures.ttft_p50_s);
      report->Add("ttft_p99_s", figures.ttft_p99_s);
      report->Add("tpot_mean_ms", figures.tpot_mean_s * kMillisecondsASecond);
      report->Add("tpot_p99_ms", figures.tpot_p99_s * kMillisecondsASecond);
      report->Add("goodput_per_second", figures.goodput_per_second);
      report->Add("completions", figures.completions);
      report->Add("preemptions", figures.preemptions);
      report->Add("hit", figures.hit);
      report->Add("busiest_over_mean", figures.busiest_over_mean);
      report->Add("kv_tokens_peak", figures.kv_tokens_peak);
      report->Add("slow_request_share", figures.slow_request_share);
    }
    return {.result = {std::string(policy.name()), figures.hit, figures.ttft_p99_s},
            .busiest_over_mean = figures.busiest_over_mean,
            .goodput_per_second = figures.goodput_per_second};
  }

 private:
  const BlockTrace& trace_;
  const DecodeOptions options_;
};

absl::StatusOr<std::unique_ptr<Model>> MakeModel(const BlockTrace* trace,
                                                 const SuiteOptions& options) {
  if (options.model.empty() || options.model == kPrefillModel) {
    return std::make_unique<PrefillModel>(trace, options);
  }
  if (options.model != kDecodeModel) {
    return absl::InvalidArgumentError(absl::StrCat("--model ", options.model, ": there are ",
                                                   kPrefillModel, " and ", kDecodeModel));
  }
  if (options.stale_seconds > 0 || options.lose_batches > 0 || options.routers > 1) {
    return absl::InvalidArgumentError(
        "--model decode has one router and exact views: without --stale-seconds, --lose-batches "
        "and --routers");
  }
  if (options.load <= 0 || options.slow_speed <= 0) {
    return absl::InvalidArgumentError("--load and --slow-speed: above zero");
  }
  if (const uint64_t longest = LongestKvTokens(*trace); longest > options.kv_tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("--kv-tokens ", options.kv_tokens, ": the longest request has ", longest));
  }
  return std::make_unique<DecodeModel>(trace, options);
}

absl::Status RunAll(const Model& model, JsonReport* report) {
  std::vector<Outcome> outcomes;
  for (const absl::string_view name : router::RoutePolicyNames()) {
    const auto policy = router::MakeRoutePolicy(name, {});
    if (!policy.ok()) return policy.status();
    const bool is_default = name == router::kDefaultRoutePolicy;
    outcomes.push_back(model.Run(**policy, is_default ? report : nullptr));
  }
  std::vector<PolicyResult> others;
  PolicyResult ours;
  for (const Outcome& outcome : outcomes) {
    const std::string& name = outcome.result.policy;
    report->Add(absl::StrCat(name, "_hit"), outcome.result.hit);
    report->Add(absl::StrCat(name, "_busiest_over_mean"), outcome.busiest_over_mean);
    report->Add(absl::StrCat(name, "_", model.p99_key()), outcome.result.p99_s);
    if (outcome.goodput_per_second > 0) {
      report->Add(absl::StrCat(name, "_goodput_per_second"), outcome.goodput_per_second);
    }
    if (name == router::kDefaultRoutePolicy) {
      ours = outcome.result;
    } else {
      others.push_back(outcome.result);
    }
  }
  const Rivals rivals = FindRivals(ours, others);
  report->Add("rivals", static_cast<double>(rivals.policies.size()));
  report->Add("rival_policies", absl::StrJoin(rivals.policies, ","));
  report->Add("p99_over_best_as_good", rivals.p99_over_best);
  return absl::OkStatus();
}

}  // namespace

absl::Status RunRoutingSuite(const SuiteOptions& options, JsonReport* report) {
  if (options.trace.empty() || options.capacity == 0) {
    return absl::InvalidArgumentError("routing needs --trace FILE and --capacity BLOCKS");
  }
  const bool all = options.policy == kAll;
  const std::string name =
      options.policy.empty() || all ? std::string(router::kDefaultRoutePolicy) : options.policy;
  const absl::StatusOr<std::unique_ptr<router::RoutePolicy>> policy =
      router::MakeRoutePolicy(name, {});
  if (!policy.ok()) return policy.status();
  const absl::StatusOr<BlockTrace> trace = ReadTrace(options);
  if (!trace.ok()) return trace.status();
  const absl::StatusOr<std::unique_ptr<Model>> model = MakeModel(&*trace, options);
  if (!model.ok()) return model.status();
  report->Add("policy", name);
  (*model)->AddShared(report);
  if (all) return RunAll(**model, report);
  (*model)->Run(**policy, report);
  return absl::OkStatus();
}

}  // namespace cairn::bench
