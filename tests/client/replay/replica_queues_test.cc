// Waits under a fake clock that they move: who computes when, by the clock after each.
#include "client/replay/replica_queues.h"

#include <gmock/gmock.h>

#include "tests/client/cpp/fake_wait.h"
#include "tests/testing/fake_clock.h"

namespace cairn::replay {
namespace {

using cairn::testing::FakeClock;
using cairn::testing::FakeWait;
using ::testing::ElementsAre;

// Does not let time pass: what it was asked to wait is the answer.
class FrozenWait final : public RetryWait {
 public:
  bool WaitFor(absl::Duration wait) override {
    waits.push_back(wait);
    return true;
  }
  std::vector<absl::Duration> waits;
};

TEST(ReplicaQueues, ComputingTakesTokensOverRate) {
  FakeClock clock;
  FakeWait wait(&clock);
  ReplicaQueues queues(1000, &clock, &wait);
  EXPECT_EQ(*queues.Compute("a", 500), absl::Milliseconds(500));
  EXPECT_THAT(wait.waits(), ElementsAre(absl::Milliseconds(500)));
}

TEST(ReplicaQueues, AReplicaComputesOnePromptAfterTheOther) {
  FakeClock clock;
  FrozenWait wait;
  ReplicaQueues queues(1000, &clock, &wait);
  EXPECT_EQ(*queues.Compute("a", 1000), absl::Seconds(1));
  EXPECT_EQ(*queues.Compute("a", 2000), absl::Seconds(2));
  EXPECT_EQ(*queues.Compute("b", 1000), absl::Seconds(1));
  EXPECT_THAT(wait.waits, ElementsAre(absl::Seconds(1), absl::Seconds(3), absl::Seconds(1)));
}

TEST(ReplicaQueues, AnIdleReplicaBeginsNow) {
  FakeClock clock;
  FakeWait wait(&clock);
  ReplicaQueues queues(1000, &clock, &wait);
  (void)queues.Compute("a", 1000);
  clock.Advance(absl::Minutes(1));
  (void)queues.Compute("a", 1000);
  EXPECT_THAT(wait.waits(), ElementsAre(absl::Seconds(1), absl::Seconds(1)));
}

TEST(ReplicaQueues, WithoutARateNothingTakesTime) {
  FakeClock clock;
  FakeWait wait(&clock);
  ReplicaQueues queues(0, &clock, &wait);
  EXPECT_EQ(*queues.Compute("a", 1'000'000), absl::ZeroDuration());
  EXPECT_THAT(wait.waits(), ElementsAre());
}

TEST(ReplicaQueues, AStoppedWaitCancelsTheComputation) {
  FakeClock clock;
  FakeWait wait(&clock);
  wait.Stop();
  ReplicaQueues queues(1000, &clock, &wait);
  EXPECT_TRUE(absl::IsCancelled(queues.Compute("a", 1).status()));
}

}  // namespace
}  // namespace cairn::replay
