// ByteRate: how fast bytes may come, all pulls of a node together.
//
// A token bucket that may go into debt: bytes are taken when they have come, and who took them
// waits until the debt is paid. Never waits itself. Thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/wire/limits.h"

namespace cairn::node {

class ByteRate {
 public:
  // What may come at once after a pause, in seconds of the rate; at least one frame.
  static constexpr double kBurstSeconds = 0.1;

  // Borrows the clock, which outlives it. 0 bytes a second: no limit.
  ByteRate(uint64_t bytes_per_second, const Clock* clock)
      : rate_(static_cast<double>(bytes_per_second)),
        burst_(std::max(rate_ * kBurstSeconds, double{kFramePayloadBytesMax})),
        clock_(clock),
        left_(burst_),
        filled_(clock->SteadyNow()) {}

  // How long the caller is to wait before it takes more.
  absl::Duration Take(uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_) {
    if (rate_ == 0) return absl::ZeroDuration();
    const absl::Time now = clock_->SteadyNow();
    absl::MutexLock lock(&mutex_);
    left_ = std::min(burst_, left_ + rate_ * absl::ToDoubleSeconds(now - filled_));
    filled_ = now;
    left_ -= static_cast<double>(bytes);
    return left_ >= 0 ? absl::ZeroDuration() : absl::Seconds(-left_ / rate_);
  }

 private:
  const double rate_;
  const double burst_;
  const Clock* const clock_;
  absl::Mutex mutex_;
  double left_ ABSL_GUARDED_BY(mutex_);  // Negative: debt.
  absl::Time filled_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn::node
