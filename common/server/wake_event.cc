#include "common/server/wake_event.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>

#include "common/base/check.h"

namespace cairn {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Whether `fd` became readable before ppoll gave up; a signal only starts the wait anew.
bool PollOnce(int fd, const timespec* timeout) {
  pollfd entry{fd, POLLIN, 0};
  const int ready = ppoll(&entry, 1, timeout, nullptr);
  CAIRN_CHECK(ready >= 0 || errno == EINTR);
  return ready == 1;
}

}  // namespace

WakeEvent::WakeEvent() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) { CAIRN_CHECK(fd_ >= 0); }

WakeEvent::~WakeEvent() { close(fd_); }

void WakeEvent::Set() {
  const uint64_t one = 1;
  // EAGAIN: its count is full, so it is set.
  const ssize_t written = write(fd_, &one, sizeof(one));
  CAIRN_CHECK(written == sizeof(one) || errno == EAGAIN);
}

bool WakeEvent::WaitFor(absl::Duration timeout) const {
  const SteadyClock::time_point end = SteadyClock::now() + absl::ToChronoNanoseconds(timeout);
  for (;;) {
    const auto left = std::max(end - SteadyClock::now(), SteadyClock::duration::zero());
    const timespec left_timespec = absl::ToTimespec(absl::FromChrono(left));
    if (PollOnce(fd_, &left_timespec)) return true;
    if (SteadyClock::now() >= end) return false;
  }
}

void WakeEvent::Wait() const {
  while (!PollOnce(fd_, nullptr)) {
  }
}

}  // namespace cairn
