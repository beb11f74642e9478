// Holds the threads with tasks that wait for a notification, and fills the queue behind them.
#include "common/server/executor.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ExecutorTest, RunsTasksInOrder) {
  std::vector<int> order;
  {
    Executor executor({.name = "disk", .threads = 1, .queue_max = 8});
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(executor.Submit([&order, i] { order.push_back(i); }).ok());
    }
  }
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3));
}

TEST(ExecutorTest, AFullQueueRefusesNamingItselfAndItsBound) {
  absl::Notification release;
  Executor executor({.name = "disk", .threads = 2, .queue_max = 3});
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(executor.Submit([&] { release.WaitForNotification(); }).ok()) << i;
  }
  const absl::Status status = executor.Submit([] {});
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("disk"), HasSubstr("3")));
  release.Notify();
}

TEST(ExecutorTest, TheBytesOfWaitingTasksAreBounded) {
  absl::Notification started;
  absl::Notification release;
  Executor executor({.name = "disk", .threads = 1, .queue_max = 8, .queue_bytes_max = 100});
  ASSERT_TRUE(executor
                  .Submit(
                      [&] {
                        started.Notify();
                        release.WaitForNotification();
                      },
                      100)
                  .ok());
  started.WaitForNotification();
  ASSERT_TRUE(executor.Submit([] {}, 60).ok());  // What runs does not count.
  const absl::Status status = executor.Submit([] {}, 41);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("disk"), HasSubstr("60 bytes of 100")));
  EXPECT_TRUE(executor.Submit([] {}, 40).ok());
  EXPECT_FALSE(executor.Submit([] {}, UINT64_MAX).ok());
  release.Notify();
  while (!executor.Submit([] {}, 100).ok()) std::this_thread::yield();
}

TEST(ExecutorTest, HasRoomAgainWhenTasksEnd) {
  Executor executor({.name = "disk", .threads = 1, .queue_max = 0});
  absl::Notification release;
  ASSERT_TRUE(executor.Submit([&] { release.WaitForNotification(); }).ok());
  EXPECT_FALSE(executor.Submit([] {}).ok());
  release.Notify();
  while (!executor.Submit([] {}).ok()) std::this_thread::yield();
}

TEST(ExecutorTest, ThreadsRunAtTheSameTime) {
  absl::Notification first, second;
  Executor executor({.name = "disk", .threads = 2, .queue_max = 0});
  ASSERT_TRUE(executor
                  .Submit([&] {
                    first.Notify();
                    second.WaitForNotification();
                  })
                  .ok());
  ASSERT_TRUE(executor
                  .Submit([&] {
                    first.WaitForNotification();
                    second.Notify();
                  })
                  .ok());
}

TEST(ExecutorTest, DestructionRunsWhatWasTaken) {
  std::atomic<int> ran = 0;
  absl::Notification release;
  auto executor =
      std::make_unique<Executor>(Executor::Options{.name = "disk", .threads = 2, .queue_max = 100});
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(executor
                    ->Submit([&] {
                      release.WaitForNotification();
                      ++ran;
                    })
                    .ok());
  }
  std::thread releaser([&] { release.Notify(); });
  executor.reset();
  EXPECT_EQ(ran, 100);
  releaser.join();
}

TEST(ExecutorTest, ATaskThatIsRefusedIsDestroyedUnrun) {
  absl::Notification release;
  Executor executor({.name = "disk", .threads = 1, .queue_max = 0});
  ASSERT_TRUE(executor.Submit([&] { release.WaitForNotification(); }).ok());
  bool ran = false;
  auto held = std::make_shared<int>(0);
  EXPECT_FALSE(executor.Submit([&ran, held] { ran = true; }).ok());
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_FALSE(ran);
  release.Notify();
}

TEST(ExecutorTest, BackgroundThreadsAreNicerThanTheirMaker) {
  const int mine = getpriority(PRIO_PROCESS, 0);
  int theirs = 0;
  {
    Executor executor({.name = "spill", .threads = 1, .queue_max = 1, .nice = 2});
    ASSERT_TRUE(executor.Submit([&] { theirs = getpriority(PRIO_PROCESS, 0); }).ok());
  }
  constexpr int kNicest = 19;
  EXPECT_EQ(theirs, std::min(mine + 2, kNicest));
}

}  // namespace
}  // namespace cairn
