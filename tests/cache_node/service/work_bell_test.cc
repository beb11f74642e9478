// Method: waits that only a ring can end, and rings from other threads.
#include "cache_node/service/work_bell.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace cairn::node {
namespace {

constexpr absl::Duration kForever = absl::Hours(1000);

TEST(WorkBell, RingBeforeTheWaitEndsIt) {
  WorkBell bell;
  bell.Ring();
  bell.Ring();
  bell.WaitFor(kForever);
}

TEST(WorkBell, EachWaitNeedsARingOfItsOwn) {
  WorkBell bell;
  for (int i = 0; i < 3; ++i) {
    bell.Ring();
    bell.WaitFor(kForever);
    bell.WaitFor(absl::ZeroDuration());
  }
}

TEST(WorkBell, TimeEndsAWaitToo) {
  WorkBell bell;
  bell.WaitFor(-absl::Seconds(1));
  bell.WaitFor(absl::Microseconds(1));
}

TEST(WorkBell, NoWorkIsLeftBehindHoweverRingsAndWaitsMeet) {
  constexpr int kThreads = 4;
  constexpr int kEach = 20'000;
  WorkBell bell;
  std::atomic<int> work{0};
  std::vector<std::thread> ringers;
  for (int i = 0; i < kThreads; ++i) {
    ringers.emplace_back([&] {
      for (int j = 0; j < kEach; ++j) {
        work.fetch_add(1);
        bell.Ring();
      }
    });
  }
  int done = 0;
  while (done < kThreads * kEach) {
    const int seen = work.exchange(0);
    done += seen;
    if (seen == 0) bell.WaitFor(kForever);
  }
  for (std::thread& ringer : ringers) ringer.join();
}

}  // namespace
}  // namespace cairn::node
