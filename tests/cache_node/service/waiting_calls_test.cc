// Method: calls whose answer the test holds back, swept by hand; and once by the real thread.
#include "cache_node/service/waiting_calls.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "absl/synchronization/notification.h"
#include "cache_node/service/settled_waiter.h"
#include "tests/testing/fake_clock.h"

namespace cairn::node {
namespace {

using Reason = WaitingCalls::Reason;

// What became of one call.
struct Story {
  bool settled = false;
  int tries = 0;
  std::string heard;                   // 'A'nswered, or why it gave up.
  std::function<void()> while_trying;  // Runs within a try.
  absl::Notification ended;
};

class StoryCall final : public WaitingCalls::Call {
 public:
  explicit StoryCall(Story* story) : story_(story) {}

  bool TryAnswer() override {
    ++story_->tries;
    if (story_->while_trying) story_->while_trying();
    if (story_->settled) End('A');
    return story_->settled;
  }
  void GiveUp(Reason reason) override {
    End(reason == Reason::kDeadline ? 'D' : reason == Reason::kCancelled ? 'C' : 'S');
  }

 private:
  void End(char how) {
    story_->heard += how;
    story_->ended.Notify();
  }

  Story* const story_;
};

class WaitingCallsTest : public ::testing::Test {
 protected:
  WaitingCalls::Ticket Join(Story* story, absl::Duration wait) {
    std::unique_ptr<WaitingCalls::Call> call = std::make_unique<StoryCall>(story);
    return calls_.Join(now_ + wait, call);
  }
  void TearDown() override { calls_.Stop(); }

  absl::Time now_ = absl::UnixEpoch();
  WaitingCalls calls_;
};

TEST_F(WaitingCallsTest, AnswersWhenSettled) {
  Story story;
  Join(&story, absl::Seconds(1));
  calls_.Sweep(now_);
  EXPECT_EQ(story.heard, "");
  story.settled = true;
  calls_.Sweep(now_);
  EXPECT_EQ(story.heard, "A");
  EXPECT_EQ(calls_.waiting(), 0u);
}

TEST_F(WaitingCallsTest, GivesUpAtTheDeadlineAfterALastTry) {
  Story story;
  Join(&story, absl::Seconds(1));
  EXPECT_EQ(calls_.Sweep(now_), now_ + absl::Seconds(1));
  calls_.Sweep(now_ + absl::Seconds(1));
  EXPECT_EQ(story.heard, "D");
  EXPECT_EQ(story.tries, 2);
}

TEST_F(WaitingCallsTest, SettledAtTheDeadlineIsAnswered) {
  Story story;
  Join(&story, absl::Seconds(1));
  story.settled = true;
  calls_.Sweep(now_ + absl::Hours(1));
  EXPECT_EQ(story.heard, "A");
}

TEST_F(WaitingCallsTest, CancelledLeavesAtOnce) {
  Story story;
  const WaitingCalls::Ticket ticket = Join(&story, absl::Seconds(1));
  calls_.Cancel(ticket);
  EXPECT_EQ(story.heard, "C");
  calls_.Cancel(ticket);
  calls_.Sweep(now_);
  EXPECT_EQ(story.heard, "C");
  EXPECT_EQ(story.tries, 0);
}

TEST_F(WaitingCallsTest, CancelledDuringATryEndsAfterIt) {
  Story story;
  const WaitingCalls::Ticket ticket = Join(&story, absl::Seconds(1));
  story.while_trying = [&] {
    calls_.Cancel(ticket);
    EXPECT_EQ(story.heard, "");
  };
  calls_.Sweep(now_);
  EXPECT_EQ(story.heard, "C");
}

TEST_F(WaitingCallsTest, CancelledDuringTheTryThatAnswersIsAnswered) {
  Story story;
  const WaitingCalls::Ticket ticket = Join(&story, absl::Seconds(1));
  story.while_trying = [&] {
    calls_.Cancel(ticket);
    story.settled = true;
  };
  calls_.Sweep(now_);
  EXPECT_EQ(story.heard, "A");
}

TEST_F(WaitingCallsTest, ListIsBounded) {
  std::vector<std::unique_ptr<Story>> stories;
  for (size_t i = 0; i < WaitingCalls::kWaitingMax; ++i) {
    stories.push_back(std::make_unique<Story>());
    ASSERT_NE(Join(stories.back().get(), absl::Seconds(1)), 0u);
  }
  Story story;
  std::unique_ptr<WaitingCalls::Call> call = std::make_unique<StoryCall>(&story);
  EXPECT_EQ(calls_.Join(now_, call), 0u);
  EXPECT_NE(call, nullptr);
  calls_.Stop();
  EXPECT_EQ(stories.front()->heard, "S");
}

TEST_F(WaitingCallsTest, NobodyJoinsAfterStop) {
  calls_.Stop();
  Story story;
  EXPECT_EQ(Join(&story, absl::Seconds(1)), 0u);
}

TEST(SettledWaiterTest, SweepsOnSignalAndOnDeadline) {
  testing::FakeClock clock;
  WaitingCalls calls;
  SettledWaiter waiter(&calls, &clock);
  Story settled;
  settled.settled = true;
  std::unique_ptr<WaitingCalls::Call> call = std::make_unique<StoryCall>(&settled);
  calls.Join(clock.SteadyNow() + absl::Seconds(1), call);
  waiter.Signal();
  settled.ended.WaitForNotification();
  EXPECT_EQ(settled.heard, "A");

  Story late;
  absl::Notification tried;
  late.while_trying = [&] {
    if (!tried.HasBeenNotified()) tried.Notify();
  };
  call = std::make_unique<StoryCall>(&late);
  calls.Join(clock.SteadyNow() + absl::Seconds(1), call);
  waiter.Signal();
  tried.WaitForNotification();
  clock.Advance(absl::Seconds(2));
  while (!late.ended.WaitForNotificationWithTimeout(absl::Milliseconds(1))) waiter.Tick();
  EXPECT_EQ(late.heard, "D");
}

}  // namespace
}  // namespace cairn::node
