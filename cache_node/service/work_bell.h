// WorkBell: wakes one thread that looks for work, with a timeout by the steady clock.
//
// Rings that come before the wait, or beside it, end it once. After a wait the thread looks for
// work and then waits again: a ring that says of work is never lost between the two. Any number of
// threads ring, one waits.
#pragma once

#include <atomic>

#include "absl/time/time.h"

namespace cairn::node {

class WorkBell {
 public:
  // Aborts when the process has no file descriptor left.
  WorkBell();
  ~WorkBell();

  WorkBell(const WorkBell&) = delete;
  WorkBell& operator=(const WorkBell&) = delete;

  // Cheap while it is rung already.
  void Ring();
  // Until it rings or `timeout` has passed (at once when that is not positive).
  void WaitFor(absl::Duration timeout);

 private:
  const int fd_;
  std::atomic<bool> rung_{false};
};

}  // namespace cairn::node
