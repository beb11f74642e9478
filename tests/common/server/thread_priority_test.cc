// Method: the system is asked for the priorities of a thread that lowered its own, and of another.
#include "common/server/thread_priority.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

#include "gmock/gmock.h"

namespace cairn {
namespace {

int Nice() { return getpriority(PRIO_PROCESS, static_cast<id_t>(gettid())); }

TEST(ThreadPriorityTest, OneThreadGivesWayAndOthersDoNot) {
  const int before = Nice();
  int lowered = 0;
  int scheduler = 0;
  long io_priority = 0;
  std::thread([&] {
    LowerThisThread();
    lowered = Nice();
    scheduler = sched_getscheduler(0);
    io_priority = syscall(SYS_ioprio_get, 1, 0);
  }).join();
  EXPECT_EQ(lowered, 10);
  EXPECT_EQ(scheduler, SCHED_BATCH);
  EXPECT_EQ(io_priority, 2 << 13 | 7);
  EXPECT_EQ(Nice(), before);
  EXPECT_NE(sched_getscheduler(0), SCHED_BATCH);
}

}  // namespace
}  // namespace cairn
