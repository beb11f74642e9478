// RetryWait: how a client waits before it calls again.
//
// An interface so that a test moves a fake clock instead. Implementations are thread-safe.
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace cairn {

class RetryWait {
 public:
  virtual ~RetryWait() = default;

  // Returns true after `wait`; false, at once, when there is to be no next attempt.
  virtual bool WaitFor(absl::Duration wait) = 0;
};

// Waits on a condition that Stop() fulfils.
class StoppableWait final : public RetryWait {
 public:
  bool WaitFor(absl::Duration wait) override ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return !mutex_.AwaitWithTimeout(absl::Condition(&stopped_), wait);
  }

  // Ends all waits, now and later.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }

 private:
  absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace cairn
