#include "common/server/exit_deadline.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "common/server/thread_name.h"

namespace cairn {

ExitDeadline::ExitDeadline(absl::Duration within, std::string message, int exit_status)
    : within_(within),
      message_(std::move(message)),
      exit_status_(exit_status),
      thread_([this] { Run(); }) {}

ExitDeadline::~ExitDeadline() {
  over_.Set();
  thread_.join();
}

void ExitDeadline::Run() const {
  NameThisThread("exit-deadline");
  if (over_.WaitFor(within_)) return;
  std::fprintf(stderr, "%s\n", message_.c_str());
  _exit(exit_status_);
}

}  // namespace cairn
