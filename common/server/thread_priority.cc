#include "common/server/thread_priority.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace cairn {
namespace {

constexpr int kNice = 10;
constexpr uint64_t kShortTurnNs = 100'000;  // The least that Linux grants.
constexpr uint64_t kLongTurnNs = 3'000'000;
// The C library has no names for these (ioprio_set(2)).
constexpr int kIoWhoProcess = 1;
constexpr int kIoBestEffort = 2;
constexpr int kIoLowest = 7;
constexpr int kIoClassShift = 13;

// struct sched_attr of sched_setattr(2) in its first version; the C library has none.
struct SchedulerRequest {
  uint32_t size = sizeof(SchedulerRequest);
  uint32_t policy = SCHED_OTHER;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime_ns = 0;
  uint64_t deadline_ns = 0;
  uint64_t period_ns = 0;
};
static_assert(sizeof(SchedulerRequest) == 48);

int Nice() { return getpriority(PRIO_PROCESS, static_cast<id_t>(gettid())); }

void Request(const SchedulerRequest& request) { syscall(SYS_sched_setattr, 0, &request, 0); }

}  // namespace

void TakeShortTurns() { Request({.nice = Nice(), .runtime_ns = kShortTurnNs}); }

void LowerThisThread() {
  // Who made the process nicer still is not overruled (and it would not be allowed).
  const int nice = std::max(kNice, Nice());
  Request({.policy = SCHED_BATCH, .nice = nice, .runtime_ns = kLongTurnNs});
  syscall(SYS_ioprio_set, kIoWhoProcess, 0, kIoBestEffort << kIoClassShift | kIoLowest);
}

}  // namespace cairn
