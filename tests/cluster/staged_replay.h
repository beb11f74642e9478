// StagedReplay: a replay on a thread of its own that goes only as far as the test says, and what
// became of each request so far.
//
// For use by one thread at a time.
#pragma once

#include <cstddef>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/cpp/model_worker.h"
#include "client/cpp/retry_wait.h"
#include "client/replay/replay_runner.h"
#include "tests/cluster/gated_trace.h"

namespace cairn::testing {

class StagedReplay {
 public:
  // Begins, with no request yet. The target's parts outlive it.
  StagedReplay(replay::ReplayOptions options, const replay::ReplayTarget& target,
               std::vector<replay::TraceRequest> requests);
  // Finishes.
  ~StagedReplay();

  // Lets the first `count` requests of all start.
  void RunUntil(size_t count) { trace_.Allow(count); }

  // Waits until that many requests ended; false after `bound`, or when the replay is over.
  bool AwaitDone(size_t count, absl::Duration bound);
  size_t done() const;

  // How requests ended, in that order, without the first `from`.
  std::vector<WorkOutcome> OutcomesSince(size_t from) const;
  // Hit tokens over prompt tokens of those.
  double HitRateSince(size_t from) const;

  // Lets the rest run, and waits for the end.
  absl::StatusOr<replay::ReplayReport> Finish();

 private:
  void Note(const WorkOutcome& outcome);

  const size_t request_count_;
  GatedTrace trace_;
  StoppableWait wait_;
  mutable absl::Mutex mutex_;
  std::vector<WorkOutcome> outcomes_ ABSL_GUARDED_BY(mutex_);
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  absl::StatusOr<replay::ReplayReport> report_ = absl::UnknownError("not finished");
  std::thread thread_;
};

}  // namespace cairn::testing
