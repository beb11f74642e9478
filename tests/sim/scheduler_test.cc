// Moves virtual time over events of two hosts and looks at what happens when.
#include "tests/sim/scheduler.h"

#include <gmock/gmock.h>

#include <string>

namespace cairn::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr HostId kHost = 1;
constexpr HostId kOther = 2;

class SchedulerTest : public ::testing::Test {
 protected:
  void Say(absl::Duration after, HostId host, const std::string& what) {
    scheduler_.After(after, host, [this, what] {
      said_.push_back(what + " at " + absl::FormatDuration(scheduler_.Now() - begin_));
    });
  }
  void RunAll() {
    while (scheduler_.Step()) {
    }
  }

  Scheduler scheduler_;
  const absl::Time begin_ = scheduler_.Now();
  std::vector<std::string> said_;
};

TEST_F(SchedulerTest, EventsHappenInOrderOfTheirTimesThenOfTheirMaking) {
  Say(absl::Seconds(2), kHost, "c");
  Say(absl::Seconds(1), kOther, "a");
  Say(absl::Seconds(1), kHost, "b");
  RunAll();
  EXPECT_THAT(said_, ElementsAre("a at 1s", "b at 1s", "c at 2s"));
}

TEST_F(SchedulerTest, AnEventMayMakeMore) {
  scheduler_.After(absl::Seconds(1), kHost, [this] { Say(absl::Seconds(1), kHost, "later"); });
  RunAll();
  EXPECT_THAT(said_, ElementsAre("later at 2s"));
}

TEST_F(SchedulerTest, AHostThatStallsFindsItsEventsLateAndInOrder) {
  Say(absl::Seconds(1), kHost, "a");
  Say(absl::Seconds(2), kHost, "b");
  Say(absl::Seconds(2), kOther, "other");
  Say(absl::Seconds(4), kHost, "c");
  scheduler_.Stall(kHost, begin_ + absl::Seconds(3));
  EXPECT_TRUE(scheduler_.Stalled(kHost));
  RunAll();
  EXPECT_THAT(said_, ElementsAre("other at 2s", "a at 3s", "b at 3s", "c at 4s"));
  EXPECT_FALSE(scheduler_.Stalled(kHost));
}

TEST_F(SchedulerTest, AShorterStallDoesNotEndALongerOne) {
  Say(absl::Seconds(1), kHost, "a");
  scheduler_.Stall(kHost, begin_ + absl::Seconds(3));
  scheduler_.Stall(kHost, begin_ + absl::Seconds(2));
  RunAll();
  EXPECT_THAT(said_, ElementsAre("a at 3s"));
}

TEST_F(SchedulerTest, AHostThatDiesLosesItsEventsAndItsNextLifeItsStall) {
  Say(absl::Seconds(1), kHost, "before");
  scheduler_.Stall(kHost, begin_ + absl::Seconds(9));
  scheduler_.Forget(kHost);
  RunAll();
  EXPECT_THAT(said_, IsEmpty());
  Say(absl::Seconds(1), kHost, "after");
  RunAll();
  EXPECT_THAT(said_, ElementsAre("after at 1s"));
}

TEST_F(SchedulerTest, TimeStandsStillWithoutEvents) {
  EXPECT_FALSE(scheduler_.Step());
  EXPECT_EQ(scheduler_.Now(), begin_);
}

}  // namespace
}  // namespace cairn::sim
