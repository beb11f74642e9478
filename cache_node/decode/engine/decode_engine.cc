#include "cache_node/decode/engine/decode_engine.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/server/thread_name.h"

namespace cairn::node {
namespace {

constexpr int kLooksPerTime = 32;

bool IsWithin(const DecodeRound::Cost& cost, const DecodeRound::Cost& bound) {
  return cost.bytes <= bound.bytes && cost.products <= bound.products;
}

}  // namespace

DecodeEngine::DecodeEngine(const Options& options, const Parts& parts)
    : options_(options),
      parts_(parts),
      inline_runner_(options.path, &inline_pool_),
      runner_(options.path, parts.pool),
      leases_(parts.store, parts.counters),
      round_(&leases_, parts.sequences),
      numbers_(parts.sequences->Numbers()),
      thread_([this] { Loop(); }) {}

DecodeEngine::~DecodeEngine() { Stop(); }

absl::StatusOr<bool> DecodeEngine::TakeTurnOrWait(Work& work) {
  absl::MutexLock lock(&mutex_);
  if (stopping_)
    return absl::UnavailableError("served attention is being stopped; use another node");
  if (!taken_) {
    CAIRN_CHECK(waiting_.empty());
    taken_ = true;
    return true;
  }
  if (waiting_.size() >= options_.waiting_max) {
    ++counts_.refused;
    return absl::ResourceExhaustedError(
        absl::StrCat("requests that wait for attention: ", waiting_.size(), " already"));
  }
  waiting_.push_back(std::move(work));
  return false;
}

absl::Status DecodeEngine::Submit(DecodeStep* step) {
  Work work = step;
  const absl::StatusOr<bool> turn = TakeTurnOrWait(work);
  if (!turn.ok()) return turn.status();
  if (*turn) DriveHere(Load{.steps = {step}, .job = std::nullopt});
  return absl::OkStatus();
}

absl::Status DecodeEngine::Run(Job& job) {
  Work work = std::move(job);
  const absl::StatusOr<bool> turn = TakeTurnOrWait(work);
  if (turn.ok() && !*turn) return absl::OkStatus();
  job = std::get<Job>(std::move(work));
  if (!turn.ok()) return turn.status();
  DriveHere(Load{.steps = {}, .job = std::move(job)});
  return absl::OkStatus();
}

std::optional<DecodeEngine::Load> DecodeEngine::TakeWaiting() {
  absl::MutexLock lock(&mutex_);
  if (waiting_.empty()) {
    taken_ = false;
    // Who stops waits for that.
    if (stopping_) turn_given_.SignalAll();
    return std::nullopt;
  }
  Load load;
  uint64_t result_bytes = 0;
  while (!waiting_.empty() && load.steps.size() < kRoundStepsMax) {
    Work& work = waiting_.front();
    if (std::holds_alternative<Job>(work)) {
      if (!load.steps.empty()) break;
      load.job = std::get<Job>(std::move(work));
      waiting_.pop_front();
      break;
    }
    DecodeStep* const step = std::get<DecodeStep*>(work);
    result_bytes += step->result_bytes;
    if (!load.steps.empty() && result_bytes > AttendPlan::kResultBytesMax) break;
    load.steps.push_back(step);
    waiting_.pop_front();
  }
  return load;
}

void DecodeEngine::HandOver() {
  absl::MutexLock lock(&mutex_);
  CAIRN_CHECK(taken_ && !thread_has_it_);
  thread_has_it_ = true;
  // Under the lock: behind it the engine may be gone.
  given_.fetch_add(1, std::memory_order_release);
  turn_given_.SignalAll();
}

void DecodeEngine::DriveHere(std::optional<Load> load) {
  for (int i = 0; i < kInlineRoundsMax; ++i) {
    if (!load.has_value()) return;
    if (load->job.has_value()) {
      RunJob(*std::move(load->job));
    } else {
      Prepare(std::move(load->steps));
      if (!IsWithin(round_.cost(), options_.inline_cost)) {
        prepared_ = true;
        return HandOver();
      }
      FinishRound(&inline_runner_, &inline_pool_);
    }
    load = i + 1 < kInlineRoundsMax ? TakeWaiting() : std::nullopt;
  }
  HandOver();
}

bool DecodeEngine::AwaitTurn() {
  const auto spin_end = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(options_.spin);
  const uint64_t seen = given_.load(std::memory_order_acquire);
  do {
    for (int i = 0; i < kLooksPerTime && given_.load(std::memory_order_acquire) == seen; ++i) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
  } while (given_.load(std::memory_order_acquire) == seen &&
           std::chrono::steady_clock::now() < spin_end);
  absl::MutexLock lock(&mutex_);
  while (!thread_has_it_ && (!stopping_ || taken_)) turn_given_.Wait(&mutex_);
  return std::exchange(thread_has_it_, false);
}

void DecodeEngine::Loop() {
  NameThisThread("decode-0");
  while (AwaitTurn()) {
    if (std::exchange(prepared_, false)) FinishRound(&runner_, parts_.pool);
    while (std::optional<Load> load = TakeWaiting()) {
      if (load->job.has_value()) {
        RunJob(*std::move(load->job));
      } else {
        Prepare(std::move(load->steps));
        FinishRound(&runner_, parts_.pool);
      }
    }
  }
}

void DecodeEngine::Prepare(std::vector<DecodeStep*> steps) {
  began_ = parts_.clock->SteadyNow();
  round_.Prepare(std::move(steps), began_);
}

void DecodeEngine::FinishRound(kernels::AttentionRunner* runner, kernels::WorkerPool* pool) {
  round_.Compute(runner, pool);
  const uint64_t items = round_.items();
  const std::vector<DecodeStep*> steps = round_.TakeSteps();
  {
    absl::MutexLock lock(&mutex_);
    counts_.steps += steps.size();
    counts_.items += items;
    ++counts_.rounds;
    if (pool == &inline_pool_) ++counts_.inline_rounds;
    counts_.batches += round_.batches();
    counts_.attended.rows += round_.totals().rows;
    counts_.attended.shared_rows += round_.totals().shared_rows;
    counts_.attended.read_bytes += round_.totals().read_bytes;
    counts_.attended.saved_bytes += round_.totals().saved_bytes;
  }
  parts_.round_items.Observe(static_cast<double>(items));
  parts_.round_seconds.Observe(absl::ToDoubleSeconds(parts_.clock->SteadyNow() - began_));
  if (parts_.seals != nullptr && parts_.sequences->SealsWait()) parts_.seals();
  for (DecodeStep* const step : steps) step->OnDone();
}

void DecodeEngine::RunJob(Job job) {
  std::move(job)(*parts_.sequences);
  const DecodeNumbers numbers = parts_.sequences->Numbers();
  if (parts_.seals != nullptr && parts_.sequences->SealsWait()) parts_.seals();
  absl::MutexLock lock(&numbers_mutex_);
  numbers_ = numbers;
}

void DecodeEngine::TickAll(SequenceTable& sequences) {
  tick_waits_.store(false);
  sequences.Tick();
  leases_.Tick(parts_.clock->SteadyNow());
}

void DecodeEngine::Tick() {
  if (tick_waits_.exchange(true)) return;
  Job job = [this](SequenceTable& sequences) { TickAll(sequences); };
  if (!Run(job).ok()) tick_waits_.store(false);
}

void DecodeEngine::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    turn_given_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
}

DecodeCounts DecodeEngine::counts() const {
  absl::MutexLock lock(&mutex_);
  DecodeCounts counts = counts_;
  counts.waiting = waiting_.size();
  return counts;
}

DecodeNumbers DecodeEngine::numbers() const {
  absl::MutexLock lock(&numbers_mutex_);
  return numbers_;
}

}  // namespace cairn::node
