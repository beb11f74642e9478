// The fakes of time and chance: a fake that does something else than its name says misleads every
// test that stands on it.
#include <gmock/gmock.h>

#include <vector>

#include "tests/testing/fake_clock.h"
#include "tests/testing/seeded_random.h"

namespace cairn::testing {
namespace {

TEST(FakeClockTest, StandsStillUntilMoved) {
  const FakeClock clock;
  EXPECT_EQ(clock.SteadyNow(), clock.SteadyNow());
  EXPECT_EQ(clock.WallNow(), clock.WallNow());
}

TEST(FakeClockTest, AdvanceMovesBothClocksAlike) {
  FakeClock clock;
  const absl::Time steady = clock.SteadyNow(), wall = clock.WallNow();
  clock.Advance(absl::Milliseconds(1500));
  EXPECT_EQ(clock.SteadyNow() - steady, absl::Milliseconds(1500));
  EXPECT_EQ(clock.WallNow() - wall, absl::Milliseconds(1500));
}

TEST(FakeClockTest, AStepOfTheWallClockLeavesSteadyTimeAlone) {
  FakeClock clock;
  const absl::Time steady = clock.SteadyNow(), wall = clock.WallNow();
  clock.StepWall(-absl::Hours(2));
  EXPECT_EQ(clock.SteadyNow(), steady);
  EXPECT_EQ(clock.WallNow() - wall, -absl::Hours(2));
}

TEST(SeededRandomTest, RepeatsItselfUnderOneSeed) {
  SeededRandom a(7), b(7);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.New<LeaseId>(), b.New<LeaseId>());
}

TEST(SeededRandomTest, DiffersUnderAnotherSeedAndFromCallToCall) {
  SeededRandom a(7), b(8);
  const LeaseId first = a.New<LeaseId>();
  EXPECT_NE(first, b.New<LeaseId>());
  EXPECT_NE(first, a.New<LeaseId>());
}

TEST(SeededRandomTest, FillsEveryByteAndNothingBeyond) {
  std::vector<int> distinct(16, 0);
  SeededRandom random(1);
  for (int round = 0; round < 64; ++round) {
    std::vector<uint8_t> bytes(18, 0);
    random.Fill(bytes.data() + 1, 16);
    EXPECT_EQ(bytes.front(), 0);
    EXPECT_EQ(bytes.back(), 0);
    for (size_t i = 0; i < 16; ++i) distinct[i] += bytes[i + 1] != 0 ? 1 : 0;
  }
  for (int count : distinct) EXPECT_GT(count, 32);
}

}  // namespace
}  // namespace cairn::testing
