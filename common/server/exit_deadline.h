// ExitDeadline: ends the process when an orderly stop takes longer than it may.
//
// An orderly stop waits for calls that cannot be interrupted, such as those of a disk that does not
// answer. While this lives, the process is ended at once when the time is over, by the steady
// clock: no destructor runs. So it is made last before the stop, in main.
#pragma once

#include <string>
#include <thread>

#include "absl/time/time.h"
#include "common/server/wake_event.h"

namespace cairn {

class ExitDeadline {
 public:
  // `message` goes to standard error when it comes to that.
  ExitDeadline(absl::Duration within, std::string message, int exit_status);
  ~ExitDeadline();

  ExitDeadline(const ExitDeadline&) = delete;
  ExitDeadline& operator=(const ExitDeadline&) = delete;

 private:
  void Run() const;

  const absl::Duration within_;
  const std::string message_;
  const int exit_status_;
  WakeEvent over_;
  std::thread thread_;  // Last: it uses all of the above.
};

}  // namespace cairn
