// PeriodicThread: calls a function at a fixed interval on a thread of its own.
//
// The first call comes one interval after construction; calls never overlap. A call that takes
// longer than the interval makes the next one late, and those missed are not made up. By the steady
// clock. The destructor wakes the thread at once and returns when a call under way has ended; the
// function is not called after that.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "common/server/wake_event.h"

namespace cairn {

class PeriodicThread {
 public:
  // `name` shows in the process's thread list (its first 15 bytes). `interval` is positive.
  PeriodicThread(std::string name, absl::Duration interval, std::function<void()> function);
  ~PeriodicThread();

  PeriodicThread(const PeriodicThread&) = delete;
  PeriodicThread& operator=(const PeriodicThread&) = delete;

 private:
  void Run();

  const std::string name_;
  const absl::Duration interval_;
  const std::function<void()> function_;
  WakeEvent stop_;
  std::thread thread_;
};

}  // namespace cairn
