#include "client/replay/replica_queues.h"

#include <algorithm>

#include "common/base/check.h"

namespace cairn::replay {

ReplicaQueues::ReplicaQueues(double tokens_per_second, const Clock* clock, RetryWait* wait)
    : tokens_per_second_(tokens_per_second), clock_(clock), wait_(wait) {
  CAIRN_CHECK(tokens_per_second >= 0);
}

absl::StatusOr<absl::Duration> ReplicaQueues::Compute(const std::string& worker_address,
                                                      uint64_t tokens) {
  if (tokens_per_second_ <= 0 || tokens == 0) return absl::ZeroDuration();
  const absl::Duration takes = absl::Seconds(static_cast<double>(tokens) / tokens_per_second_);
  const absl::Time now = clock_->SteadyNow();
  absl::Time done;
  {
    absl::MutexLock lock(&mutex_);
    absl::Time& idle_at = idle_at_.try_emplace(worker_address, now).first->second;
    idle_at = std::max(idle_at, now) + takes;
    done = idle_at;
  }
  if (!wait_->WaitFor(done - now)) return absl::CancelledError("the replay was stopped");
  return takes;
}

}  // namespace cairn::replay
