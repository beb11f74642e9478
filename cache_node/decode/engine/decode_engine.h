// DecodeEngine: does steps of attention, and what changes sequences, one after the other.
//
// Whoever has the turn uses the table of sequences, computes and answers; there is one turn. A step
// that comes while nobody has it is done at once, never held back for others to join: what takes
// little (inline_cost) on the thread that brings it, all else on the engine's own thread with the
// threads of the pool. Steps that come meanwhile wait in order, and are then done together, as many
// as there are within a round's bounds: what they have in common is computed once. Jobs are what
// may change which sequences there are; no step overtakes a job or is overtaken by one.
//
// Thread-safe. Borrows its parts, which must outlive it. No step and no job is left at its end:
// Stop was called, or all were done.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <thread>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "cache_node/decode/engine/decode_round.h"
#include "cache_node/decode/engine/decode_step.h"
#include "cache_node/decode/engine/leased_runs.h"
#include "cache_node/decode/sequence/sequence_table.h"
#include "common/base/clock.h"
#include "common/metrics/metric_handles.h"
#include "kernels/attention/attention_runner.h"
#include "kernels/cpu_path.h"
#include "kernels/worker_pool.h"

namespace cairn::node {

// Since the start, but for what it says.
struct DecodeCounts {
  uint64_t waiting = 0;  // Steps and jobs that wait now.
  uint64_t refused = 0;  // Steps and jobs that found no room to wait.
  uint64_t steps = 0;
  uint64_t items = 0;  // That were computed.
  uint64_t rounds = 0;
  uint64_t inline_rounds = 0;  // Of them on threads that brought steps.
  uint64_t batches = 0;
  AttendTotals attended;
};

class DecodeEngine {
 public:
  static constexpr DecodeRound::Cost kInlineCost = {.bytes = uint64_t{512} << 10,
                                                    .products = uint64_t{2} << 20};

  struct Parts {
    SequenceTable* sequences = nullptr;
    BlockStore* store = nullptr;
    const StoreCounters* counters = nullptr;
    const Clock* clock = nullptr;
    kernels::WorkerPool* pool = nullptr;
    std::function<void()> seals;  // Blocks wait to be sealed. Cheap; may be none.
    Histogram round_items;        // Of each round.
    Histogram round_seconds;
  };
  struct Options {
    kernels::CpuPath path = kernels::BestCpuPath();
    size_t waiting_max = 4096;  // Steps and jobs.
    absl::Duration spin;        // The engine's thread looks so long for a turn before it sleeps.
    DecodeRound::Cost inline_cost = kInlineCost;  // Of what is done by who brings it.
  };
  static constexpr size_t kRoundStepsMax = 256;
  // On one thread that brought a step; after them the engine's thread goes on.
  static constexpr int kInlineRoundsMax = 8;

  using Job = absl::AnyInvocable<void(SequenceTable& sequences) &&>;

  DecodeEngine(const Options& options, const Parts& parts);
  ~DecodeEngine();

  DecodeEngine(const DecodeEngine&) = delete;
  DecodeEngine& operator=(const DecodeEngine&) = delete;

  // OK: OnDone will be called, perhaps before this returns. RESOURCE_EXHAUSTED naming the bound:
  // no room to wait; UNAVAILABLE: it was stopped. The step is then the caller's as before.
  // REQUIRES: CheckItems.
  absl::Status Submit(DecodeStep* step) ABSL_LOCKS_EXCLUDED(mutex_);
  // The same of a job, which is moved from when it is OK. Jobs take a bounded, short time.
  absl::Status Run(Job& job) ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends what is due. Every few tens of milliseconds; never waits.
  void Tick() ABSL_LOCKS_EXCLUDED(mutex_);

  // What waits is done, what comes is refused. Ends the thread.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  DecodeCounts counts() const ABSL_LOCKS_EXCLUDED(mutex_);
  // As of the last job, or Tick.
  DecodeNumbers numbers() const ABSL_LOCKS_EXCLUDED(numbers_mutex_);

 private:
  using Work = std::variant<DecodeStep*, Job>;
  // What is done in one go: steps, or a job.
  struct Load {
    std::vector<DecodeStep*> steps;
    std::optional<Job> job;
  };

  // True: the caller has the turn, and `work` is still its. False: it waits. Else it is refused.
  absl::StatusOr<bool> TakeTurnOrWait(Work& work) ABSL_LOCKS_EXCLUDED(mutex_);
  // What waits, up to the next job; nothing: the turn was given back.
  std::optional<Load> TakeWaiting() ABSL_LOCKS_EXCLUDED(mutex_);
  // The turn is the engine's thread's.
  void HandOver() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for the turn. False: it is to end.
  bool AwaitTurn() ABSL_LOCKS_EXCLUDED(mutex_);

  // REQUIRES of these: the turn. They give it on.
  void DriveHere(std::optional<Load> load) ABSL_LOCKS_EXCLUDED(mutex_);
  void Loop() ABSL_LOCKS_EXCLUDED(mutex_);
  // REQUIRES of these: the turn. They keep it.
  void Prepare(std::vector<DecodeStep*> steps);
  void FinishRound(kernels::AttentionRunner* runner, kernels::WorkerPool* pool)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void RunJob(Job job) ABSL_LOCKS_EXCLUDED(numbers_mutex_);
  void TickAll(SequenceTable& sequences);

  const Options options_;
  const Parts parts_;
  // These are of who has the turn.
  kernels::InlinePool inline_pool_;
  kernels::AttentionRunner inline_runner_;
  kernels::AttentionRunner runner_;
  LeasedRuns leases_;
  DecodeRound round_;
  bool prepared_ = false;  // `round_` was handed over.
  absl::Time began_;       // When it was begun.

  mutable absl::Mutex mutex_;
  absl::CondVar turn_given_;
  // Empty while nobody has the turn.
  std::deque<Work> waiting_ ABSL_GUARDED_BY(mutex_);
  bool taken_ ABSL_GUARDED_BY(mutex_) = false;          // Somebody has the turn,
  bool thread_has_it_ ABSL_GUARDED_BY(mutex_) = false;  // the engine's thread.
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  DecodeCounts counts_ ABSL_GUARDED_BY(mutex_);
  std::atomic<uint64_t> given_{0};  // Turns given to the thread.
  std::atomic<bool> tick_waits_{false};
  mutable absl::Mutex numbers_mutex_;
  DecodeNumbers numbers_ ABSL_GUARDED_BY(numbers_mutex_);
  std::thread thread_;  // Last: it uses all of the above.
};

}  // namespace cairn::node
