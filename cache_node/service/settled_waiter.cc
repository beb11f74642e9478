#include "cache_node/service/settled_waiter.h"

#include "common/server/thread_name.h"

namespace cairn::node {

SettledWaiter::SettledWaiter(WaitingCalls* calls, const Clock* clock)
    : calls_(calls), clock_(clock), thread_([this] { Run(); }) {}

SettledWaiter::~SettledWaiter() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  stop_.Set();
  thread_.join();
  calls_->Stop();
}

void SettledWaiter::Signal() {
  absl::MutexLock lock(&mutex_);
  signalled_ = true;
}

void SettledWaiter::Tick() {
  const absl::Time now = clock_->SteadyNow();
  absl::MutexLock lock(&mutex_);
  if (now >= next_deadline_) signalled_ = true;
}

void SettledWaiter::Run() {
  NameThisThread("settled-waiter");
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &SettledWaiter::SignalledOrStopping));
      if (stopping_) return;
      signalled_ = false;
    }
    const absl::Time next_deadline = calls_->Sweep(clock_->SteadyNow());
    {
      absl::MutexLock lock(&mutex_);
      next_deadline_ = next_deadline;
    }
    stop_.WaitFor(kSweepPause);
  }
}

}  // namespace cairn::node
