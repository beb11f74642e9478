// ReplicaQueues: the time that model workers would take to compute.
//
// Each replica computes one prompt at a time, in the order they came, at one rate. Computing here
// is waiting. Thread-safe. Borrows clock and wait.
#pragma once

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/cpp/retry_wait.h"
#include "common/base/clock.h"

namespace cairn::replay {

class ReplicaQueues {
 public:
  // At rate 0 nothing takes time.
  ReplicaQueues(double tokens_per_second, const Clock* clock, RetryWait* wait);

  // Returns when `tokens` are computed at that replica, after all that was asked for there before.
  // The time for these tokens alone. CANCELLED when the wait was stopped.
  absl::StatusOr<absl::Duration> Compute(const std::string& worker_address, uint64_t tokens)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const double tokens_per_second_;
  const Clock* const clock_;
  RetryWait* const wait_;
  absl::Mutex mutex_;
  // When each has computed all that it was asked for.
  absl::flat_hash_map<std::string, absl::Time> idle_at_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn::replay
