#include "common/server/periodic_thread.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/server/thread_name.h"

namespace cairn {

PeriodicThread::PeriodicThread(std::string name, absl::Duration interval,
                               std::function<void()> function)
    : name_(std::move(name)), interval_(interval), function_(std::move(function)) {
  CAIRN_CHECK(interval_ > absl::ZeroDuration() && function_ != nullptr);
  thread_ = std::thread([this] { Run(); });
}

PeriodicThread::~PeriodicThread() {
  stop_.Set();
  thread_.join();
}

void PeriodicThread::Run() {
  NameThisThread(name_);
  const SystemClock clock;
  absl::Time next = clock.SteadyNow() + interval_;
  while (!stop_.WaitFor(next - clock.SteadyNow())) {
    function_();
    const absl::Time now = clock.SteadyNow();
    next += interval_;
    if (next < now) next = now + interval_;
  }
}

}  // namespace cairn
