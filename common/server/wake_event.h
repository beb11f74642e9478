// WakeEvent: wakes one thread that waits with a timeout, by the steady clock.
//
// An absl::Mutex or CondVar wait with a timeout follows the wall clock in this Abseil: a step of it
// would make every tick early or late. This waits in poll() on an eventfd instead. Set() is
// thread-safe and safe in a signal handler; the event stays set.
#pragma once

#include "absl/time/time.h"

namespace cairn {

class WakeEvent {
 public:
  // Aborts when the process has no file descriptor left.
  WakeEvent();
  ~WakeEvent();

  WakeEvent(const WakeEvent&) = delete;
  WakeEvent& operator=(const WakeEvent&) = delete;

  void Set();

  // True as soon as it is set, false after `timeout` (at once when that is not positive).
  bool WaitFor(absl::Duration timeout) const;
  void Wait() const;

  // Readable once it is set; for a poll() with others.
  int fd() const { return fd_; }

 private:
  const int fd_;
};

}  // namespace cairn
