// Moves a FakeClock by hand, ticks or does not, and looks at what the guarded time shows.
#include "common/base/guarded_time.h"

#include <atomic>
#include <thread>

#include "gmock/gmock.h"
#include "tests/testing/fake_clock.h"

namespace cairn {
namespace {

constexpr absl::Duration kAdvanceMax = absl::Milliseconds(500);

TEST(GuardedTimeTest, FollowsTheClockBetweenTimelyTicks) {
  testing::FakeClock clock;
  GuardedTime time(&clock, kAdvanceMax);
  const absl::Time start = time.Now();
  for (int i = 0; i < 10; ++i) {
    clock.Advance(absl::Milliseconds(100));
    EXPECT_EQ(time.Now() - start, absl::Milliseconds(100) * (i + 1));
    time.Tick();
    EXPECT_EQ(time.Now() - start, absl::Milliseconds(100) * (i + 1));
  }
  EXPECT_EQ(time.Lost(), absl::ZeroDuration());
}

TEST(GuardedTimeTest, AStopOfTenSecondsAddsNoMoreThanTheBound) {
  testing::FakeClock clock;
  GuardedTime time(&clock, kAdvanceMax);
  const absl::Time start = time.Now();
  clock.Advance(absl::Seconds(10));
  EXPECT_EQ(time.Now() - start, kAdvanceMax) << "even before the late tick itself";
  time.Tick();
  EXPECT_EQ(time.Now() - start, kAdvanceMax);
  EXPECT_EQ(time.Lost(), absl::Milliseconds(9500));
}

TEST(GuardedTimeTest, GoesOnFromTheLateTick) {
  testing::FakeClock clock;
  GuardedTime time(&clock, kAdvanceMax);
  const absl::Time start = time.Now();
  clock.Advance(absl::Seconds(10));
  time.Tick();
  clock.Advance(absl::Milliseconds(100));
  EXPECT_EQ(time.Now() - start, absl::Milliseconds(600));
}

TEST(GuardedTimeTest, IgnoresStepsOfTheWallClock) {
  testing::FakeClock clock;
  GuardedTime time(&clock, kAdvanceMax);
  const absl::Time start = time.Now();
  clock.StepWall(absl::Hours(-5));
  time.Tick();
  EXPECT_EQ(time.Now(), start);
}

TEST(GuardedTimeTest, NeverGoesBackForAThreadWhileOthersTick) {
  testing::FakeClock clock;
  GuardedTime time(&clock, kAdvanceMax);
  std::atomic<bool> done = false;
  std::thread ticker([&] {
    for (int i = 0; i < 20'000; ++i) {
      clock.Advance(absl::Milliseconds(i % 7 == 0 ? 900 : 1));
      time.Tick();
    }
    done = true;
  });
  absl::Time last = time.Now();
  int backwards = 0;
  while (!done) {
    const absl::Time now = time.Now();
    if (now < last) ++backwards;
    last = now;
  }
  ticker.join();
  EXPECT_EQ(backwards, 0);
}

}  // namespace
}  // namespace cairn
