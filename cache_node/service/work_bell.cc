#include "cache_node/service/work_bell.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "common/base/check.h"

namespace cairn::node {

WorkBell::WorkBell() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) { CAIRN_CHECK(fd_ >= 0); }

WorkBell::~WorkBell() { close(fd_); }

void WorkBell::Ring() {
  if (rung_.exchange(true)) return;
  const uint64_t one = 1;
  const ssize_t written = write(fd_, &one, sizeof(one));
  CAIRN_CHECK(written == sizeof(one) || errno == EAGAIN);
}

void WorkBell::WaitFor(absl::Duration timeout) {
  pollfd entry{fd_, POLLIN, 0};
  const timespec wait = absl::ToTimespec(std::max(timeout, absl::ZeroDuration()));
  // A signal ends the wait early, which does no harm.
  const int ready = ppoll(&entry, 1, &wait, nullptr);
  CAIRN_CHECK(ready >= 0 || errno == EINTR);
  uint64_t rings = 0;
  const ssize_t got = read(fd_, &rings, sizeof(rings));
  CAIRN_CHECK(got == sizeof(rings) || errno == EAGAIN);
  // Last: whoever rings from here on wakes the next wait, and what was rung for before is there to
  // be seen.
  rung_.store(false);
}

}  // namespace cairn::node
