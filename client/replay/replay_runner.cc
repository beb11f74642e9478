#include "client/replay/replay_runner.h"

#include <atomic>
#include <optional>
#include <ostream>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "client/cpp/reserve_call.h"
#include "client/replay/cache_oracles.h"
#include "client/replay/computed_blocks.h"
#include "client/replay/replay_cluster.h"
#include "client/replay/replay_engine.h"
#include "client/replay/replay_namespace.h"
#include "client/replay/replay_tally.h"
#include "client/replay/replica_queues.h"
#include "client/replay/request_queue.h"
#include "common/base/check.h"
#include "common/identity/block_hasher.h"
#include "common/rpc/caller_identity.h"

namespace cairn::replay {
namespace {

// Read ahead of the workers.
constexpr size_t kRequestsQueuedMax = 64;

// One request under way, with what its keys are made of.
struct OwnedPrompt {
  std::vector<uint32_t> tokens;
  absl::StatusOr<Prompt> prompt = absl::UnknownError("not made");
  // The tenant's alone, where `prompt` has a public region.
  std::optional<Prompt> own;
};

void MakePrompt(const NamespaceHandle& name_space, const ReplayOptions& options,
                const TraceRequest& request, OwnedPrompt* out) {
  const Sha256BlockHasher hasher;
  out->tokens = request.prompt.Tokens();
  const absl::Span<const uint32_t> tokens = out->tokens;
  const Scope own = {options.tenant, "", ""};
  const Region whole{.scope = own, .tokens = tokens, .external_ids = {}};
  out->prompt = Prompt::Make(hasher, name_space, {&whole, 1});
  const size_t shared = options.public_tokens;
  if (shared == 0 || tokens.size() <= shared || !out->prompt.ok()) return;
  const Region regions[] = {
      {.scope = {kPublicTenant, "", ""}, .tokens = tokens.first(shared), .external_ids = {}},
      {.scope = own, .tokens = tokens.subspan(shared), .external_ids = {}}};
  out->own = *std::move(out->prompt);
  out->prompt = Prompt::Make(hasher, name_space, regions);
}

}  // namespace

absl::Status ValidateReplayOptions(const ReplayOptions& options) {
  if (options.workers < 1 || options.workers > kReplayWorkersMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("workers: ", options.workers, "; 1 to ", kReplayWorkersMax));
  }
  // Written so that what is no number is refused.
  const auto is_zero_or = [](double value, double least, double most) {
    return value == 0 || (value >= least && value <= most);
  };
  if (!is_zero_or(options.rate, 1e-6, 1e9)) {
    return absl::InvalidArgumentError(absl::StrCat("rate: ", options.rate, "; 0, or 1e-6 to 1e9"));
  }
  if (!is_zero_or(options.compute_tokens_per_second, 1, 1e12)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "compute_tokens_per_second: ", options.compute_tokens_per_second, "; 0, or 1 to 1e12"));
  }
  return absl::OkStatus();
}

absl::StatusOr<NamespaceHandle> NamespaceOfReplay(const ReplayOptions& options,
                                                  const TraceReader& trace) {
  uint32_t block_tokens = options.block_tokens;
  if (block_tokens == 0) block_tokens = trace.block_tokens();
  if (block_tokens == 0) block_tokens = kBlockTokensDefault;
  if (options.public_tokens % block_tokens != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("public_tokens: ", options.public_tokens, "; whole blocks of ", block_tokens,
                     " tokens, such as ", options.public_tokens / block_tokens * block_tokens,
                     " or ", (options.public_tokens / block_tokens + 1) * block_tokens));
  }
  return MakeReplayNamespace(block_tokens, options.block_bytes);
}

absl::StatusOr<std::vector<BlockKey>> PublicEndsOf(const ReplayOptions& options,
                                                   const NamespaceHandle& name_space,
                                                   const TraceRequest& request) {
  OwnedPrompt owned;
  MakePrompt(name_space, options, request, &owned);
  if (!owned.prompt.ok()) return owned.prompt.status();
  return cairn::PublicEndsOf(name_space, *owned.prompt);
}

// All that the threads of one replay share.
struct ReplayRunner::Replay {
  Replay(const NamespaceHandle& its_name_space, const ModelWorker* its_worker,
         const ReplayOptions& options, const Clock* clock, RetryWait* wait, uint64_t lru_blocks)
      : name_space(its_name_space),
        worker(its_worker),
        started(clock->SteadyNow()),
        oracles(name_space.block_tokens(), lru_blocks),
        queues(options.compute_tokens_per_second, clock, wait),
        requests(kRequestsQueuedMax),
        workers_running(options.workers) {}

  const NamespaceHandle& name_space;
  const ModelWorker* const worker;
  const absl::Time started;
  CacheOracles oracles;       // Of the thread that reads the trace.
  absl::Status trace_status;  // The same.
  ReplicaQueues queues;
  RequestQueue requests;
  std::atomic<uint64_t> requests_done{0};
  std::atomic<uint64_t> tokens_done{0};
  std::atomic<uint64_t> hit_tokens_done{0};
  absl::Mutex mutex;
  ReplayTally tally ABSL_GUARDED_BY(mutex);
  ComputedBlocks computed ABSL_GUARDED_BY(mutex);
  uint32_t workers_running ABSL_GUARDED_BY(mutex);

  bool AllWorkersDone() const ABSL_SHARED_LOCKS_REQUIRED(mutex) { return workers_running == 0; }
};

ReplayRunner::ReplayRunner(const ReplayOptions& options, const ReplayTarget& target,
                           RetryWait* wait, std::ostream* progress)
    : options_(options), target_(target), wait_(wait), progress_(progress) {
  CAIRN_CHECK_OK(ValidateReplayOptions(options));
  CAIRN_CHECK(target.nodes != nullptr);
}

absl::StatusOr<ReplayReport> ReplayRunner::Run(TraceReader* trace) {
  const absl::StatusOr<NamespaceHandle> name_space = NamespaceOfReplay(options_, *trace);
  if (!name_space.ok()) return name_space.status();
  const absl::StatusOr<ReplayCluster> cluster =
      target_.router != nullptr
          ? PrepareRoutedCluster(*name_space, target_.router, target_.nodes, wait_)
          : PrepareSingleNode(*name_space, target_.node_address, target_.nodes);
  if (!cluster.ok()) return cluster.status();

  ModelWorkerOptions worker_options = options_.worker;
  (target_.router == nullptr ? worker_options.fixed_replicas : worker_options.known_replicas) =
      cluster->replicas;
  // Otherwise the prompt is computed at once, and the end follows on its heels.
  worker_options.report_first_token = options_.compute_tokens_per_second > 0;
  const ModelWorker worker(worker_options, *name_space, target_.router, target_.nodes,
                           target_.public_nodes);
  const uint64_t lru_blocks = options_.lru_blocks > 0
                                  ? options_.lru_blocks
                                  : cluster->host_bytes / name_space->block_bytes();
  const Clock* clock = target_.nodes->clock();
  Replay replay(*name_space, &worker, options_, clock, wait_, lru_blocks);
  {
    absl::MutexLock lock(&replay.mutex);
    for (const RoutedReplica& one : cluster->replicas) replay.tally.AddReplica(one.worker_address);
  }
  RunThreads(trace, &replay);
  if (!replay.trace_status.ok()) return replay.trace_status;

  ReplayReport report;
  absl::MutexLock lock(&replay.mutex);
  replay.tally.Fill(&report);
  report.stampede_computations = replay.computed.most();
  first_failure_ = replay.tally.failure();
  first_cache_failure_ = replay.tally.cache_failure();
  report.empty_requests = trace->empty_requests();
  report.ideal_hit_blocks = replay.oracles.ideal_hit_blocks();
  report.ideal_hit_tokens = replay.oracles.ideal_hit_tokens();
  report.lru_hit_blocks = replay.oracles.lru_hit_blocks();
  report.lru_hit_tokens = replay.oracles.lru_hit_tokens();
  report.lru_capacity_blocks = lru_blocks;
  report.elapsed = clock->SteadyNow() - replay.started;
  return report;
}

void ReplayRunner::RunThreads(TraceReader* trace, Replay* replay) const {
  std::thread reader([&] { ReadTrace(trace, replay); });
  std::vector<std::thread> workers;
  for (uint32_t i = 0; i < options_.workers; ++i) workers.emplace_back([&] { Work(replay); });
  ShowProgress(replay);
  reader.join();
  for (std::thread& worker : workers) worker.join();
}

void ReplayRunner::ReadTrace(TraceReader* trace, Replay* replay) const {
  for (uint64_t read = 0; options_.requests_max == 0 || read < options_.requests_max; ++read) {
    absl::StatusOr<std::optional<TraceRequest>> next = trace->Next();
    if (next.ok() && !next->has_value()) break;
    replay->trace_status = next.status();
    if (next.ok()) replay->trace_status = replay->oracles.Observe((*next)->prompt).status();
    if (!replay->trace_status.ok() || !replay->requests.Push(**std::move(next))) break;
  }
  replay->requests.End();
}

void ReplayRunner::Work(Replay* replay) const {
  const Clock* clock = target_.nodes->clock();
  ReplayEngine engine(&replay->name_space, &replay->queues);
  ReplayTally tally;
  while (const std::optional<TraceRequest> request = replay->requests.Pop()) {
    if (options_.rate > 0) {
      const absl::Time due = replay->started + absl::Seconds(request->arrival_s / options_.rate);
      const absl::Duration early = due - clock->SteadyNow();
      if (early > absl::ZeroDuration() && !wait_->WaitFor(early)) break;
    }
    OwnedPrompt owned;
    MakePrompt(replay->name_space, options_, *request, &owned);
    absl::Status ready = owned.prompt.status();
    if (ready.ok()) ready = engine.Begin(&*owned.prompt);
    if (!ready.ok()) {
      tally.CountFailed(ready, request->input_tokens());
      continue;
    }
    const WorkOutcome outcome = replay->worker->Run(
        {.prompt = &*owned.prompt,
         .own_prompt = owned.own.has_value() ? &*owned.own : nullptr,
         .output_tokens =
             static_cast<uint32_t>(std::min<uint64_t>(request->output_tokens, kPromptTokensMax))},
        &engine);
    tally.Count(outcome, engine.wrong_bytes());
    if (owned.own.has_value()) tally.CountShared(outcome, owned.prompt->FirstBlock(1));
    if (outcome.status.ok()) {
      absl::MutexLock lock(&replay->mutex);
      replay->computed.Add(owned.prompt->keys(), outcome.hits.total());
    }
    if (options_.observe) options_.observe(outcome);
    replay->requests_done.fetch_add(1, std::memory_order_relaxed);
    replay->tokens_done.fetch_add(outcome.prompt_tokens, std::memory_order_relaxed);
    replay->hit_tokens_done.fetch_add(outcome.hit_tokens, std::memory_order_relaxed);
  }
  // Also when the wait was stopped: nobody is to wait for room then.
  replay->requests.End();
  absl::MutexLock lock(&replay->mutex);
  replay->tally.Merge(tally);
  --replay->workers_running;
}

void ReplayRunner::ShowProgress(Replay* replay) const {
  const Clock* clock = target_.nodes->clock();
  while (true) {
    {
      absl::MutexLock lock(&replay->mutex);
      if (replay->mutex.AwaitWithTimeout(absl::Condition(replay, &Replay::AllWorkersDone),
                                         options_.progress_interval)) {
        return;
      }
    }
    if (progress_ == nullptr) continue;
    const uint64_t tokens = replay->tokens_done.load(std::memory_order_relaxed);
    const uint64_t hits = replay->hit_tokens_done.load(std::memory_order_relaxed);
    const double hit_rate =
        tokens == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(tokens);
    *progress_ << absl::StrFormat("%6.0f s  %8d requests  %12d tokens  hit rate %.4f",
                                  absl::ToDoubleSeconds(clock->SteadyNow() - replay->started),
                                  replay->requests_done.load(std::memory_order_relaxed), tokens,
                                  hit_rate)
               << std::endl;
  }
}

}  // namespace cairn::replay
