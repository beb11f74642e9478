// FinishGate: lets any thread end a stream while another is starting an operation on it.
//
// gRPC forbids to start a read or write once Finish was called, and the stream may be gone right
// after. So each start goes through Enter and Leave, and each wish to end through End: who gets a
// status back calls Finish with it, which is exactly one of all callers. Thread-safe; part of its
// stream.
#pragma once

#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/base/check.h"

namespace cairn::node {

class FinishGate {
 public:
  // True: start one operation, then Leave. False: the stream ends; start nothing.
  bool Enter() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (ended_) return false;
    ++starting_;
    return true;
  }

  std::optional<absl::Status> Leave() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    CAIRN_CHECK(starting_ > 0);
    --starting_;
    return TakeStatus();
  }

  // True, once: the stream ends, and the caller is to end it, as nobody else starts anything.
  // False: it ends already, or somebody is inside.
  bool EndAlone() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (ended_ || starting_ > 0) return false;
    return ended_ = taken_ = true;
  }

  // The first status counts.
  std::optional<absl::Status> End(absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(ended_, true)) return std::nullopt;
    status_ = std::move(status);
    return TakeStatus();
  }

 private:
  std::optional<absl::Status> TakeStatus() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!ended_ || starting_ > 0 || std::exchange(taken_, true)) return std::nullopt;
    return status_;
  }

  absl::Mutex mutex_;
  int starting_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool taken_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn::node
