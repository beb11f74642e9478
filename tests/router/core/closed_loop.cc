#include "tests/router/core/closed_loop.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn::router {
namespace {

const Fingerprint kModel = NumberedFingerprint(7);
constexpr char kTenant[] = "acme";
constexpr absl::Duration kHeartbeat = absl::Milliseconds(200);
constexpr absl::Duration kWriterWaitMax = absl::Seconds(1);

}  // namespace

ClosedLoop::ClosedLoop(const LoopOptions& options)
    : options_(options), random_(options.seed), nodes_(options.nodes) {
  RouterOptions router = options.router;
  for (size_t i = 0; i < options.nodes; ++i) {
    router.holder_addresses.push_back(absl::StrCat("10.0.0.", i, ":7000"));
  }
  auto core = RouterCore::Make(router, std::make_unique<PrefixCostPolicy>(options.policy), &clock_,
                               &random_);
  CAIRN_CHECK_OK(core.status());
  core_ = *std::move(core);
  for (size_t i = 0; i < options.nodes; ++i) {
    Node& node = nodes_[i];
    node.holder = std::make_unique<ModelHolder>(
        ModelHolder::Identity{.node_id = absl::StrCat("node-", i),
                              .address = router.holder_addresses[i],
                              .worker_address = absl::StrCat("10.0.0.", i, ":8000"),
                              .incarnation = 'i',
                              .shards = 16});
    node.computes_until = Now();
    const auto holder = static_cast<HolderIndex>(i);
    Deliver(holder, {node.holder->Hello(), ModelHolder::Namespace(kModel, options.block_tokens)});
    Deliver(holder, node.holder->Snapshots());
  }
  next_heartbeat_ = Now();
}

void ClosedLoop::Push(Event event) {
  event.order = next_order_++;
  events_.push(std::move(event));
}

void ClosedLoop::Deliver(HolderIndex node, const std::vector<v1::WatchBlocksResponse>& messages) {
  for (const v1::WatchBlocksResponse& message : messages) {
    const auto resyncs = core_->OnFeed(node, message);
    CAIRN_CHECK_OK(resyncs.status());
    CAIRN_CHECK(resyncs->empty());
  }
}

// Heartbeats travel as late as records do.
void ClosedLoop::PassTimeUntil(absl::Time at) {
  while (next_heartbeat_ <= at) {
    clock_.Advance(next_heartbeat_ - Now());
    core_->Tick();
    for (size_t i = 0; i < nodes_.size(); ++i) {
      Push({.at = Now() + options_.feed_delay,
            .job = kNoJob,
            .node = static_cast<HolderIndex>(i),
            .messages = {nodes_[i].holder->Heartbeat()}});
    }
    next_heartbeat_ += kHeartbeat;
  }
  if (at > Now()) clock_.Advance(at - Now());
  core_->Tick();
}

LoopResult ClosedLoop::Run(const std::vector<LoopRequest>& requests) {
  size_t next = 0;
  jobs_.reserve(requests.size());
  while (next < std::min(options_.workers, requests.size())) Start(requests[next++]);
  size_t running = jobs_.size();
  while (running > 0) {
    const absl::Time at = events_.top().at;
    if (next_heartbeat_ <= at) {
      PassTimeUntil(next_heartbeat_);
      continue;
    }
    const Event event = events_.top();
    events_.pop();
    PassTimeUntil(at);
    if (event.job == kNoJob) {
      Deliver(event.node, event.messages);
      continue;
    }
    End(jobs_[event.job]);
    --running;
    if (next == requests.size()) continue;
    Start(requests[next++]);
    ++running;
  }
  while (!events_.empty()) {
    const Event event = events_.top();
    events_.pop();
    if (event.at > Now()) clock_.Advance(event.at - Now());
    core_->Tick();
    Deliver(event.node, event.messages);
  }
  uint64_t computed = 0, busiest = 0;
  result_.all_exact = true;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const auto holder = static_cast<HolderIndex>(i);
    Deliver(holder, {nodes_[i].holder->Heartbeat()});
    result_.all_exact &= core_->StateOf(holder) == HolderState::kExact;
    computed += nodes_[i].computed_tokens;
    busiest = std::max(busiest, nodes_[i].computed_tokens);
  }
  result_.busiest_over_mean = static_cast<double>(busiest * nodes_.size()) /
                              static_cast<double>(std::max<uint64_t>(computed, 1));
  result_.predicted_tokens = core_->counters().predicted_tokens;
  result_.stale_alarm = core_->counters().stale_alarm;
  return result_;
}

void ClosedLoop::Start(const LoopRequest& request) {
  const auto answer = core_->Route({.caller = "loop",
                                    .tenant = kTenant,
                                    .fingerprint = kModel,
                                    .keys = request.keys,
                                    .prompt_tokens = request.prompt_tokens,
                                    .output_tokens = 300,
                                    .request_id = ""});
  CAIRN_CHECK_OK(answer.status());
  const std::string& chosen = answer->replicas.front().node_id;
  Job job = {.request = &request, .booking = answer->booking, .written = {}};
  while (nodes_[job.node].holder->identity().node_id != chosen) ++job.node;
  Node& node = nodes_[job.node];

  // A worker that computes looks when it begins: those before it at the same worker are done.
  const bool computes = options_.compute_tokens_per_second > 0;
  const absl::Time begin = computes ? std::max(Now(), node.computes_until) : Now();
  absl::Time ready = begin;
  size_t hits = 0;
  for (; hits < request.keys.size(); ++hits) {
    const auto present = node.present_at.find(request.keys[hits]);
    if (present == node.present_at.end()) break;
    const absl::Duration wait = present->second - begin;
    if (wait > (options_.waits_for_writers ? kWriterWaitMax : absl::ZeroDuration())) break;
    ready = std::max(ready, present->second);
  }
  job.cached_tokens = hits * options_.block_tokens;
  const uint64_t computed = request.prompt_tokens - job.cached_tokens;
  absl::Time end = ready + options_.request_time +
                   options_.block_time * static_cast<double>(request.keys.size());
  if (computes) {
    node.computes_until =
        ready + absl::Seconds(static_cast<double>(computed) / options_.compute_tokens_per_second);
    end = std::max(end, node.computes_until);
  }
  for (size_t i = hits; i < request.keys.size(); ++i) {
    if (node.present_at.try_emplace(request.keys[i], end).second) {
      job.written.push_back(request.keys[i]);
    }
  }
  node.computed_tokens += computed;
  ++result_.requests;
  result_.prompt_tokens += request.prompt_tokens;
  result_.hit_tokens += job.cached_tokens;
  jobs_.push_back(std::move(job));
  Push({.at = end, .job = jobs_.size() - 1, .node = 0, .messages = {}});
}

void ClosedLoop::End(const Job& job) {
  Node& node = nodes_[job.node];
  auto records = node.holder->Set(job.written, kInHost, kModel, kTenant);
  if (options_.feed_delay == absl::ZeroDuration()) {
    Deliver(job.node, records);
  } else {
    Push({.at = Now() + options_.feed_delay,
          .job = kNoJob,
          .node = job.node,
          .messages = std::move(records)});
  }
  const auto known =
      core_->ReportOutcome({.booking = job.booking,
                            .router_incarnation = core_->incarnation(),
                            .phase = OutcomePhase::kEnd,
                            .worker_address = "",
                            .cached_tokens = job.cached_tokens,
                            .computed_tokens = job.request->prompt_tokens - job.cached_tokens});
  CAIRN_CHECK_OK(known.status());
  CAIRN_CHECK(*known);
}

}  // namespace cairn::router
