#include "tests/bench/index/open_loop.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <thread>

namespace cairn::bench {
namespace {

constexpr int kIssuerCore = 1;
constexpr int kWorkerCore = 0;

uint32_t Clamped(int64_t ns) {
  return static_cast<uint32_t>(std::clamp<int64_t>(ns, 0, std::numeric_limits<uint32_t>::max()));
}

}  // namespace

int64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void PinThisThread(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(static_cast<size_t>(core), &cores);
  pthread_setaffinity_np(pthread_self(), sizeof(cores), &cores);
}

OpenLoopResult RunOpenLoop(size_t steps, double steps_per_second,
                           const std::function<void(size_t)>& do_step) {
  const double ns_per_step = steps_per_second > 0 ? 1e9 / steps_per_second : 0;
  std::vector<int64_t> issued(steps);
  OpenLoopResult result;
  result.issue_lag_ns.resize(steps);
  result.queue_wait_ns.resize(steps);
  result.service_ns.resize(steps);
  std::atomic<size_t> issued_count{0};
  std::atomic<int64_t> start{0};
  int64_t end = 0;
  // The worker's own: written by nobody else, so that the issuer is not disturbed.
  std::thread worker([&] {
    PinThisThread(kWorkerCore);
    start.store(NowNs());
    for (size_t i = 0; i < steps; ++i) {
      while (issued_count.load(std::memory_order_acquire) <= i) {
      }
      const int64_t began = NowNs();
      do_step(i);
      end = NowNs();
      result.queue_wait_ns[i] = Clamped(began - issued[i]);
      result.service_ns[i] = Clamped(end - began);
    }
  });
  std::thread issuer([&] {
    PinThisThread(kIssuerCore);
    while (start.load() == 0) {
    }
    const int64_t began = start.load();
    for (size_t i = 0; i < steps; ++i) {
      const int64_t due = began + static_cast<int64_t>(ns_per_step * static_cast<double>(i));
      int64_t now = NowNs();
      while (now < due) now = NowNs();
      issued[i] = now;
      result.issue_lag_ns[i] = Clamped(now - due);
      issued_count.store(i + 1, std::memory_order_release);
    }
  });
  worker.join();
  issuer.join();
  result.seconds = static_cast<double>(end - start.load()) / 1e9;
  return result;
}

double PercentileUs(std::vector<uint32_t> values_ns, double share) {
  if (values_ns.empty()) return 0;
  const auto count = static_cast<double>(values_ns.size());
  const auto rank = static_cast<size_t>(std::max(0.0, std::ceil(count * share) - 1));
  const auto at = values_ns.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(values_ns.begin(), at, values_ns.end());
  return *at / 1e3;
}

}  // namespace cairn::bench
