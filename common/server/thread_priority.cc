#include "common/server/thread_priority.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cairn {
namespace {

constexpr int kNice = 10;
// The C library has no names for these (ioprio_set(2)).
constexpr int kIoWhoProcess = 1;
constexpr int kIoBestEffort = 2;
constexpr int kIoLowest = 7;
constexpr int kIoClassShift = 13;

}  // namespace

void LowerThisThread() {
  const sched_param parameters{};
  sched_setscheduler(0, SCHED_BATCH, &parameters);
  // On Linux a thread has a nice value of its own.
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);
  syscall(SYS_ioprio_set, kIoWhoProcess, 0, kIoBestEffort << kIoClassShift | kIoLowest);
}

}  // namespace cairn
