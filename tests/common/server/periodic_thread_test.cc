// Lets a PeriodicThread call at real, very short intervals and counts; nothing measures time.
#include "common/server/periodic_thread.h"

#include <atomic>
#include <memory>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"

namespace cairn {
namespace {

TEST(PeriodicThreadTest, CallsAgainAndAgain) {
  constexpr int kCalls = 5;
  absl::BlockingCounter counter(kCalls);
  std::atomic<int> calls = 0;
  PeriodicThread thread("tick", absl::Microseconds(100), [&] {
    if (++calls <= kCalls) counter.DecrementCount();
  });
  counter.Wait();
  EXPECT_GE(calls, kCalls);
}

TEST(PeriodicThreadTest, EndsAtOnceHoweverLongTheInterval) {
  int calls = 0;
  {
    PeriodicThread thread("tick", absl::Hours(1000), [&] { ++calls; });
  }
  EXPECT_EQ(calls, 0);
}

TEST(PeriodicThreadTest, DestructionWaitsForTheCallUnderWayAndNoneFollows) {
  absl::Notification called, release;
  std::atomic<int> begun = 0, ended = 0;
  auto thread = std::make_unique<PeriodicThread>("tick", absl::Microseconds(100), [&] {
    if (++begun == 1) called.Notify();
    release.WaitForNotification();
    ++ended;
  });
  called.WaitForNotification();
  std::thread releaser([&] { release.Notify(); });
  thread.reset();
  EXPECT_GE(ended, 1);
  EXPECT_EQ(begun, ended);
  const int after = begun;
  releaser.join();
  EXPECT_EQ(begun, after);
}

}  // namespace
}  // namespace cairn
