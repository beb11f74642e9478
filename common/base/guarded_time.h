// GuardedTime: the time by which deadlines that guard against dead clients expire.
//
// It follows a steady clock, but advances by at most `advance_max` from one Tick() to the next. The
// owner ticks regularly and much more often than that. A process that was stopped, or whose machine
// was, ticked late: it finds every deadline extended by what it missed beyond `advance_max`, so
// clients that could not reach it are not taken for dead.
//
// Thread-safe; never goes back. Only differences mean anything: guarded times compare with guarded
// times of the same object, not with the clock's own. Without ticks it stops after `advance_max`.
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace cairn {

class GuardedTime {
 public:
  // Borrows `clock`, which must outlive it. `advance_max` is positive.
  GuardedTime(const Clock* clock, absl::Duration advance_max);

  GuardedTime(const GuardedTime&) = delete;
  GuardedTime& operator=(const GuardedTime&) = delete;

  // Says that the process is alive now: time may advance by another `advance_max` from here.
  void Tick() ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Time Now() const ABSL_LOCKS_EXCLUDED(mutex_);

  // How far this time has fallen behind the clock since construction, as of the last tick.
  absl::Duration Lost() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Duration Elapsed(absl::Time steady_now) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const Clock* const clock_;
  const absl::Duration advance_max_;
  mutable absl::Mutex mutex_;
  // At the last tick: what the clock showed, and what we showed.
  absl::Time steady_at_tick_ ABSL_GUARDED_BY(mutex_);
  absl::Time guarded_at_tick_ ABSL_GUARDED_BY(mutex_);
  absl::Duration lost_ ABSL_GUARDED_BY(mutex_) = absl::ZeroDuration();
};

}  // namespace cairn
