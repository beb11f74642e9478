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

using ::testing::AnyOf;

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

// What sched_getattr(2) says of the calling thread's turns; 0 before Linux 6.12.
uint64_t TurnNs() {
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns, deadline_ns, period_ns;
  } attributes = {};
  EXPECT_EQ(syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0), 0);
  return attributes.runtime_ns;
}

TEST(ThreadPriorityTest, ShortTurnsAreInheritedAndGivenUpByBackgroundWork) {
  std::thread([] {
    const int nice = Nice();
    TakeShortTurns();
    const uint64_t short_turn = TurnNs();
    EXPECT_THAT(short_turn, AnyOf(0u, 100'000u));
    EXPECT_EQ(Nice(), nice);
    std::thread([short_turn] {
      EXPECT_EQ(TurnNs(), short_turn);
      LowerThisThread();
      EXPECT_EQ(TurnNs(), 30 * short_turn);
    }).join();
  }).join();
}

}  // namespace
}  // namespace cairn
