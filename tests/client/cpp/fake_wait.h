// FakeWait: a RetryWait that moves a fake clock instead of waiting, and remembers. Thread-safe.
#pragma once

#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/cpp/retry_wait.h"
#include "tests/testing/fake_clock.h"

namespace cairn::testing {

class FakeWait final : public RetryWait {
 public:
  explicit FakeWait(FakeClock* clock) : clock_(clock) {}

  bool WaitFor(absl::Duration wait) override {
    absl::MutexLock lock(&mutex_);
    if (stopped_) return false;
    waits_.push_back(wait);
    clock_->Advance(wait);
    return true;
  }

  void Stop() {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }

  std::vector<absl::Duration> waits() const {
    absl::MutexLock lock(&mutex_);
    return waits_;
  }

 private:
  FakeClock* clock_;
  mutable absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<absl::Duration> waits_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn::testing
