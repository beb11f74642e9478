// ShutdownSignal: SIGTERM and SIGINT as an event that main waits for.
//
// Construct it in main before any other thread starts: it blocks both signals, and threads inherit
// that. A thread of its own takes them from the kernel, so no code runs in a signal handler. The
// first signal sets the event; the second ends the process at once with 128 + its number, for a
// shutdown that hangs. One at a time in a process. The signals stay blocked when it goes.
#pragma once

#include <thread>

#include "common/server/wake_event.h"

namespace cairn {

class ShutdownSignal {
 public:
  ShutdownSignal();
  ~ShutdownSignal();

  ShutdownSignal(const ShutdownSignal&) = delete;
  ShutdownSignal& operator=(const ShutdownSignal&) = delete;

  // Returns once a signal came, or Request() was called.
  void Wait() const { requested_.Wait(); }
  bool requested() const { return requested_.WaitFor(absl::ZeroDuration()); }

  // As the first signal would; thread-safe. For a program that finds that it cannot go on.
  void Request() { requested_.Set(); }

 private:
  void Run();

  WakeEvent requested_;
  WakeEvent stop_;
  int signal_fd_;
  std::thread thread_;
};

}  // namespace cairn
