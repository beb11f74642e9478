#include "common/base/guarded_time.h"

#include <algorithm>

#include "common/base/check.h"

namespace cairn {

GuardedTime::GuardedTime(const Clock* clock, absl::Duration advance_max)
    : clock_(clock),
      advance_max_(advance_max),
      steady_at_tick_(clock->SteadyNow()),
      guarded_at_tick_(steady_at_tick_) {
  CAIRN_CHECK(advance_max > absl::ZeroDuration());
}

void GuardedTime::Tick() {
  const absl::Time steady_now = clock_->SteadyNow();
  absl::MutexLock lock(&mutex_);
  // Another thread's tick may have read the clock after us and locked before us.
  if (steady_now <= steady_at_tick_) return;
  const absl::Duration advance = Elapsed(steady_now);
  lost_ += steady_now - steady_at_tick_ - advance;
  guarded_at_tick_ += advance;
  steady_at_tick_ = steady_now;
}

absl::Time GuardedTime::Now() const {
  const absl::Time steady_now = clock_->SteadyNow();
  absl::ReaderMutexLock lock(&mutex_);
  return guarded_at_tick_ + Elapsed(steady_now);
}

absl::Duration GuardedTime::Lost() const {
  absl::ReaderMutexLock lock(&mutex_);
  return lost_;
}

absl::Duration GuardedTime::Elapsed(absl::Time steady_now) const {
  return std::clamp(steady_now - steady_at_tick_, absl::ZeroDuration(), advance_max_);
}

}  // namespace cairn
