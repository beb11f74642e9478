#include "common/server/shutdown_signal.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>

#include "common/base/check.h"
#include "common/server/thread_name.h"

namespace cairn {
namespace {

constexpr int kExitSignalBase = 128;

sigset_t ShutdownSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

}  // namespace

ShutdownSignal::ShutdownSignal() {
  const sigset_t signals = ShutdownSignals();
  CAIRN_CHECK(pthread_sigmask(SIG_BLOCK, &signals, nullptr) == 0);
  signal_fd_ = signalfd(-1, &signals, SFD_CLOEXEC);
  CAIRN_CHECK(signal_fd_ >= 0);
  thread_ = std::thread([this] { Run(); });
}

ShutdownSignal::~ShutdownSignal() {
  stop_.Set();
  thread_.join();
  close(signal_fd_);
}

void ShutdownSignal::Run() {
  NameThisThread("signals");
  bool signalled = false;
  for (;;) {
    pollfd entries[] = {{stop_.fd(), POLLIN, 0}, {signal_fd_, POLLIN, 0}};
    const int ready = poll(entries, 2, -1);
    CAIRN_CHECK(ready > 0 || errno == EINTR);
    if (ready <= 0) continue;
    if (entries[0].revents != 0) return;
    signalfd_siginfo info;
    CAIRN_CHECK(read(signal_fd_, &info, sizeof(info)) == sizeof(info));
    if (signalled) _exit(kExitSignalBase + static_cast<int>(info.ssi_signo));
    signalled = true;
    requested_.Set();
  }
}

}  // namespace cairn
