// Method: streams that write down what they hear, under a clock that moves by hand.
#include "cache_node/service/in_flight_bytes.h"

#include <gtest/gtest.h>

#include <string>

#include "common/rpc/retry_status.h"
#include "tests/testing/fake_clock.h"

namespace cairn::node {
namespace {

class Listener final : public InFlightBytes::Stream {
 public:
  void OnAdmitted() override { heard += 'A'; }
  void OnRefused(absl::Status status) override {
    heard += 'R';
    refusal = std::move(status);
  }
  void OnRightsChanged() override {}
  void OnStalled(absl::Status status) override {
    heard += 'S';
    refusal = std::move(status);
  }

  std::string heard;
  absl::Status refusal;
};

class InFlightBytesTest : public ::testing::Test {
 protected:
  std::shared_ptr<Listener> Ask(uint64_t bytes) {
    auto stream = std::make_shared<Listener>();
    in_flight_.Acquire(stream, bytes);
    return stream;
  }

  void Pass(absl::Duration time) {
    clock_.Advance(time);
    in_flight_.Tick();
  }

  testing::FakeClock clock_;
  InFlightBytes in_flight_{{.bytes_max = 100,
                            .waiting_max = 2,
                            .wait_max = absl::Seconds(10),
                            .stall_max = absl::Seconds(2)},
                           &clock_};
};

TEST_F(InFlightBytesTest, AdmitsWithinTheBudgetAtOnce) {
  const auto first = Ask(60);
  const auto second = Ask(40);
  EXPECT_EQ(first->heard, "A");
  EXPECT_EQ(second->heard, "A");
  EXPECT_EQ(in_flight_.counts().bytes, 100u);
  in_flight_.Release(first.get());
  in_flight_.Release(second.get());
  EXPECT_EQ(in_flight_.counts().bytes, 0u);
}

TEST_F(InFlightBytesTest, AdmitsWaitingStreamsInOrder) {
  const auto first = Ask(100);
  const auto second = Ask(80);
  const auto third = Ask(10);
  EXPECT_EQ(second->heard, "");
  EXPECT_EQ(third->heard, "");
  in_flight_.Release(first.get());
  EXPECT_EQ(second->heard, "A");
  EXPECT_EQ(third->heard, "A");
  in_flight_.Release(second.get());
  in_flight_.Release(third.get());
}

TEST_F(InFlightBytesTest, SmallOneDoesNotOvertakeALargeOne) {
  const auto first = Ask(60);
  const auto large = Ask(80);
  const auto small = Ask(10);
  EXPECT_EQ(small->heard, "");
  EXPECT_TRUE(in_flight_.Leave(large.get()));
  EXPECT_EQ(small->heard, "A");
  in_flight_.Release(first.get());
  in_flight_.Release(small.get());
}

TEST_F(InFlightBytesTest, RefusesOverTheQueueWithARetryDelay) {
  const auto first = Ask(100);
  const auto second = Ask(1);
  const auto third = Ask(1);
  const auto fourth = Ask(1);
  EXPECT_EQ(fourth->heard, "R");
  EXPECT_EQ(fourth->refusal.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(RetryAfter(fourth->refusal).has_value());
  EXPECT_EQ(in_flight_.counts().refused_queue_full, 1u);
  EXPECT_TRUE(in_flight_.Leave(second.get()));
  EXPECT_TRUE(in_flight_.Leave(third.get()));
  in_flight_.Release(first.get());
}

TEST_F(InFlightBytesTest, RefusesAfterTheLongestWait) {
  const auto first = Ask(100);
  const auto second = Ask(1);
  Pass(absl::Seconds(9));
  EXPECT_EQ(second->heard, "");
  Pass(absl::Seconds(1));
  EXPECT_EQ(second->heard, "R");
  EXPECT_TRUE(RetryAfter(second->refusal).has_value());
  EXPECT_FALSE(in_flight_.Leave(second.get()));
  in_flight_.Release(first.get());
}

TEST_F(InFlightBytesTest, TellsOnceWhoStallsWhileOthersWait) {
  const auto first = Ask(100);
  const auto second = Ask(1);
  Pass(absl::Seconds(2));
  Pass(absl::Seconds(2));
  EXPECT_EQ(first->heard, "AS");
  EXPECT_EQ(in_flight_.counts().stalled, 1u);
  in_flight_.Release(first.get());
  EXPECT_EQ(second->heard, "A");
  in_flight_.Release(second.get());
}

TEST_F(InFlightBytesTest, LetsASlowOneBeWhenNobodyWaits) {
  const auto first = Ask(100);
  Pass(absl::Hours(1));
  EXPECT_EQ(first->heard, "A");
  in_flight_.Release(first.get());
}

TEST_F(InFlightBytesTest, WhoTriesNeverWaitsAndNeverOvertakes) {
  const auto first = Ask(60);
  const auto tries = std::make_shared<Listener>();
  EXPECT_FALSE(in_flight_.TryAcquire(tries, 41));
  ASSERT_TRUE(in_flight_.TryAcquire(tries, 30));
  EXPECT_EQ(in_flight_.counts().bytes, 90u);
  const auto waits = Ask(20);
  const auto later = std::make_shared<Listener>();
  EXPECT_FALSE(in_flight_.TryAcquire(later, 10)) << "there is room, but somebody waits for more";
  Pass(absl::Seconds(2));
  EXPECT_EQ(tries->heard, "S") << "it holds as others do";
  in_flight_.Release(tries.get());
  EXPECT_EQ(waits->heard, "A");
  EXPECT_EQ(later->heard, "");
  in_flight_.Release(first.get());
  in_flight_.Release(waits.get());
}

TEST_F(InFlightBytesTest, WhoLeftHearsNothing) {
  const auto first = Ask(100);
  const auto second = Ask(1);
  EXPECT_TRUE(in_flight_.Leave(second.get()));
  EXPECT_FALSE(in_flight_.Leave(second.get()));
  in_flight_.Release(first.get());
  EXPECT_EQ(second->heard, "");
}

TEST_F(InFlightBytesTest, WhoHoldsCannotLeave) {
  const auto first = Ask(1);
  EXPECT_FALSE(in_flight_.Leave(first.get()));
  in_flight_.Release(first.get());
}

}  // namespace
}  // namespace cairn::node
