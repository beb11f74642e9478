// SettledWaiter: the thread that sweeps WaitingCalls when something settled or a deadline passed.
//
// Sleeps on a condition otherwise. Signals that come during a sweep make one more sweep, however
// many they are. Deadlines pass by Tick only, which follows the steady clock, as timed waits here
// do not. Thread-safe. The destructor stops the calls and joins the thread.
#pragma once

#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "cache_node/service/waiting_calls.h"
#include "common/base/clock.h"
#include "common/server/wake_event.h"

namespace cairn::node {

class SettledWaiter {
 public:
  // Least time from one sweep to the next, so that a busy store is not asked without pause.
  static constexpr absl::Duration kSweepPause = absl::Milliseconds(1);

  // Borrows both, which must outlive it.
  SettledWaiter(WaitingCalls* calls, const Clock* clock);
  ~SettledWaiter();

  SettledWaiter(const SettledWaiter&) = delete;
  SettledWaiter& operator=(const SettledWaiter&) = delete;

  // Something settled, or a call joined. Cheap; may be called from anywhere.
  void Signal() ABSL_LOCKS_EXCLUDED(mutex_);
  // Called every few tens of milliseconds.
  void Tick() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  bool SignalledOrStopping() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return signalled_ || stopping_;
  }

  WaitingCalls* const calls_;
  const Clock* const clock_;
  absl::Mutex mutex_;
  bool signalled_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time next_deadline_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  WakeEvent stop_;
  std::thread thread_;  // Last: it uses all of the above.
};

}  // namespace cairn::node
