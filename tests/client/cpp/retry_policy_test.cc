// Failures one by one against the policy's decision, and the runner that follows it under a fake
// clock.
#include "client/cpp/retry_policy.h"

#include <gmock/gmock.h>

#include "client/cpp/call_runner.h"
#include "common/rpc/retry_status.h"
#include "tests/client/cpp/fake_wait.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/seeded_random.h"

namespace cairn {
namespace {

using testing::FakeClock;
using testing::FakeWait;
using testing::SeededRandom;

constexpr RetryOptions kOptions{.attempts_max = 4,
                                .backoff_initial = absl::Milliseconds(100),
                                .backoff_max = absl::Milliseconds(250)};

class RetryPolicyTest : public ::testing::Test {
 protected:
  RetryDecision After(const absl::Status& status, uint32_t attempt, const RetryRules& rules = {},
                      absl::Duration remaining = absl::Seconds(60)) {
    return policy_.AfterFailure({.status = status,
                                 .retry_after = RetryAfter(status),
                                 .attempt = attempt,
                                 .remaining = remaining},
                                rules);
  }

  SeededRandom random_{1};
  RetryPolicy policy_{kOptions, &random_};
};

const absl::Status kGone = absl::UnavailableError("gone");

absl::Status Full(absl::Duration delay) {
  return WithRetryAfter(absl::ResourceExhaustedError("full"), delay);
}

TEST_F(RetryPolicyTest, RepeatsAnUnreachableIdempotentCallUnderTheSameId) {
  const RetryDecision decision = After(kGone, 1);
  EXPECT_TRUE(decision.retry);
  EXPECT_FALSE(decision.new_request_id);
}

TEST_F(RetryPolicyTest, DoesNotRepeatWhatIsNotIdempotent) {
  EXPECT_FALSE(After(kGone, 1, {.idempotent = false}).retry);
}

TEST_F(RetryPolicyTest, WaitsDoubleUpToTheBoundWithinTheirJitter) {
  const absl::Duration full[] = {absl::Milliseconds(100), absl::Milliseconds(200),
                                 absl::Milliseconds(250)};
  for (int seed = 0; seed < 100; ++seed) {
    for (uint32_t attempt = 1; attempt <= 3; ++attempt) {
      const absl::Duration wait = After(kGone, attempt).wait;
      EXPECT_GE(wait, full[attempt - 1] / 2);
      EXPECT_LE(wait, full[attempt - 1]);
    }
  }
}

TEST_F(RetryPolicyTest, JitterDiffers) {
  const absl::Duration first = After(kGone, 1).wait;
  bool differs = false;
  for (int i = 0; i < 10; ++i) differs = differs || After(kGone, 1).wait != first;
  EXPECT_TRUE(differs);
}

TEST_F(RetryPolicyTest, StopsAtTheLastAttempt) {
  EXPECT_TRUE(After(kGone, 3).retry);
  EXPECT_FALSE(After(kGone, 4).retry);
}

TEST_F(RetryPolicyTest, StopsWhenTheWaitReachesTheDeadline) {
  EXPECT_FALSE(After(kGone, 1, {}, absl::Milliseconds(49)).retry);
  EXPECT_TRUE(After(kGone, 1, {}, absl::Milliseconds(101)).retry);
}

TEST_F(RetryPolicyTest, RefusalForLackOfRoomIsRepeatedOnlyWhenAskedFor) {
  EXPECT_FALSE(After(Full(absl::Seconds(1)), 1).retry);
  const RetryDecision decision = After(Full(absl::Seconds(1)), 1, {.wait_when_exhausted = true});
  EXPECT_TRUE(decision.retry);
  EXPECT_TRUE(decision.new_request_id);
  EXPECT_GE(decision.wait, absl::Seconds(1));
}

TEST_F(RetryPolicyTest, RefusalWithoutADelayIsNotRepeated) {
  const absl::Status status = absl::ResourceExhaustedError("too large");
  EXPECT_FALSE(After(status, 1, {.wait_when_exhausted = true}).retry);
}

TEST_F(RetryPolicyTest, DrainingNodeIsLeftAloneAsLongAsItSays) {
  EXPECT_GE(After(WithRetryAfter(kGone, absl::Seconds(2)), 1).wait, absl::Seconds(2));
}

TEST_F(RetryPolicyTest, OtherFailuresAreFinal) {
  for (const absl::Status& status :
       {absl::InvalidArgumentError(""), absl::FailedPreconditionError(""), absl::AbortedError(""),
        absl::DeadlineExceededError(""), absl::CancelledError(""), absl::DataLossError(""),
        absl::InternalError(""), absl::PermissionDeniedError("")}) {
    EXPECT_FALSE(After(status, 1, {.wait_when_exhausted = true}).retry) << status;
  }
}

class CallRunnerTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  FakeWait wait_{&clock_};
  SeededRandom random_{2};
  CallRunner runner_{kOptions, &clock_, &random_, &wait_};
};

TEST_F(CallRunnerTest, ReturnsTheFirstSuccess) {
  int calls = 0;
  EXPECT_TRUE(
      runner_
          .Run(absl::Seconds(60), {},
               [&](const CallRunner::Attempt&) { return ++calls < 3 ? kGone : absl::OkStatus(); })
          .ok());
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(wait_.waits().size(), 2u);
}

TEST_F(CallRunnerTest, ReturnsTheLastFailure) {
  int calls = 0;
  const absl::Status status = runner_.Run(absl::Seconds(60), {}, [&](const CallRunner::Attempt&) {
    ++calls;
    return absl::UnavailableError(std::to_string(calls));
  });
  EXPECT_EQ(status, absl::UnavailableError("4"));
}

TEST_F(CallRunnerTest, RemainingTimeShrinksByWhatPassed) {
  std::vector<absl::Duration> remaining;
  (void)runner_.Run(absl::Seconds(1), {}, [&](const CallRunner::Attempt& attempt) {
    remaining.push_back(attempt.remaining);
    clock_.Advance(absl::Milliseconds(300));
    return kGone;
  });
  ASSERT_GE(remaining.size(), 2u);
  EXPECT_EQ(remaining[0], absl::Seconds(1));
  EXPECT_EQ(remaining[1], absl::Milliseconds(700) - wait_.waits()[0]);
  EXPECT_LE(clock_.SteadyNow() - absl::UnixEpoch() - absl::Hours(1),
            absl::Seconds(1) + absl::Milliseconds(300));
}

TEST_F(CallRunnerTest, NewIdsGoWithTheFirstAttemptAndAfterRefusals) {
  std::vector<bool> fresh;
  const absl::Status answers[] = {kGone, Full(absl::Seconds(1)), kGone, absl::OkStatus()};
  (void)runner_.Run(absl::Seconds(60), {.wait_when_exhausted = true},
                    [&](const CallRunner::Attempt& attempt) {
                      fresh.push_back(attempt.new_request_id);
                      return answers[fresh.size() - 1];
                    });
  EXPECT_EQ(fresh, (std::vector<bool>{true, false, true, false}));
}

TEST_F(CallRunnerTest, StoppedWaitEndsTheCall) {
  wait_.Stop();
  int calls = 0;
  EXPECT_EQ(runner_.Run(absl::Seconds(60), {},
                        [&](const CallRunner::Attempt&) {
                          ++calls;
                          return kGone;
                        }),
            kGone);
  EXPECT_EQ(calls, 1);
}

TEST(StoppableWaitTest, StopEndsAWaitThatWouldLast) {
  StoppableWait wait;
  wait.Stop();
  EXPECT_FALSE(wait.WaitFor(absl::Hours(1)));
}

TEST(StoppableWaitTest, ReturnsTrueAfterTheTime) {
  StoppableWait wait;
  EXPECT_TRUE(wait.WaitFor(absl::Nanoseconds(1)));
}

}  // namespace
}  // namespace cairn
