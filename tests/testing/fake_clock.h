// FakeClock: a Clock that moves by hand. Thread-safe.
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"

namespace cairn::testing {

class FakeClock final : public Clock {
 public:
  absl::Time SteadyNow() const override {
    absl::MutexLock lock(&mutex_);
    return steady_;
  }
  absl::Time WallNow() const override {
    absl::MutexLock lock(&mutex_);
    return wall_;
  }

  // Moves both clocks on by `by`, which is not negative.
  void Advance(absl::Duration by) {
    absl::MutexLock lock(&mutex_);
    steady_ += by;
    wall_ += by;
  }

  // Moves only the wall clock, in either direction, as an operator or a time server would.
  void StepWall(absl::Duration by) {
    absl::MutexLock lock(&mutex_);
    wall_ += by;
  }

 private:
  mutable absl::Mutex mutex_;
  absl::Time steady_ ABSL_GUARDED_BY(mutex_) = absl::UnixEpoch() + absl::Hours(1);
  absl::Time wall_ ABSL_GUARDED_BY(mutex_) = absl::FromUnixSeconds(1'800'000'000);
};

}  // namespace cairn::testing
