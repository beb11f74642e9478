#include "client/cpp/async/event_signal.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace cairn {

EventSignal::EventSignal() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

EventSignal::~EventSignal() {
  if (fd_ >= 0) close(fd_);
}

// A counter that is full, or empty, is raised, or cleared, as it is: there is nothing to do.
void EventSignal::Raise() {
  const uint64_t one = 1;
  if (fd_ >= 0 && write(fd_, &one, sizeof(one)) < 0) return;
}

void EventSignal::Clear() {
  uint64_t count = 0;
  if (fd_ >= 0 && read(fd_, &count, sizeof(count)) < 0) return;
}

}  // namespace cairn
