// SystemClock: what can be said of it without waiting.
#include "common/base/clock.h"

#include <gmock/gmock.h>

namespace cairn {
namespace {

TEST(SystemClockTest, SteadyTimeNeverGoesBack) {
  const SystemClock clock;
  absl::Time last = clock.SteadyNow();
  for (int i = 0; i < 10'000; ++i) {
    const absl::Time now = clock.SteadyNow();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(SystemClockTest, SteadyTimeMovesOn) {
  const SystemClock clock;
  const absl::Time start = clock.SteadyNow();
  while (clock.SteadyNow() == start) {
  }
  EXPECT_GT(clock.SteadyNow(), start);
}

TEST(SystemClockTest, WallTimeIsAfterThisWasWritten) {
  EXPECT_GT(SystemClock().WallNow(), absl::FromUnixSeconds(1'700'000'000));
}

}  // namespace
}  // namespace cairn
