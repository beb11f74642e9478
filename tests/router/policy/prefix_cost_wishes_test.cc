// Snapshots made by hand, ranked by the default policy: how far an index is trusted, sessions, new
// replicas, labels that are preferred, deadlines.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "tests/router/policy/prefix_cost_fixture.h"

namespace cairn::router {
namespace {

using CertaintyTest = PrefixCostFixture;
using SessionTest = PrefixCostFixture;
using RampTest = PrefixCostFixture;
using PreferredLabelTest = PrefixCostFixture;
using DeadlineTest = PrefixCostFixture;

TEST_F(CertaintyTest, AHolderThatIsNotExactIsWorthAShareOfItsMatch) {
  At(0).own_tokens[kHostTier] = 8000;
  At(1).own_tokens[kHostTier] = 6000;
  At(0).holder_state = HolderState::kRecovering;  // Worth 6,400.
  EXPECT_EQ(First().replica, 0u);
  At(1).own_tokens[kHostTier] = 6500;
  EXPECT_EQ(First().replica, 1u);
  At(0).holder_state = HolderState::kDegraded;  // Worth 4,000.
  At(1).own_tokens[kHostTier] = 4001;
  EXPECT_EQ(First().replica, 1u);
  At(1).own_tokens[kHostTier] = 3999;
  EXPECT_EQ(First().replica, 0u);
  EXPECT_NEAR(First().terms.trust, 0.5, 1e-9);
  EXPECT_NEAR(First().terms.compute_seconds, 6, 1e-6) << "2,000 missing, 4,000 not trusted";
}

TEST_F(CertaintyTest, WhatThisRouterSentThereItselfIsAsCertainAsEver) {
  At(0).coming_tokens = 6000;
  At(0).holder_state = HolderState::kDegraded;
  At(1).own_tokens[kHostTier] = 5999;
  EXPECT_EQ(First().replica, 0u);
}

TEST_F(CertaintyTest, TheLearnedStaleShareTakesItsPartAndNeverMoreThanHalf) {
  At(0).own_tokens[kHostTier] = 8000;
  At(0).stale_share = 0.3;  // Worth 5,600.
  At(1).own_tokens[kHostTier] = 5500;
  EXPECT_EQ(First().replica, 0u);
  At(1).own_tokens[kHostTier] = 5700;
  EXPECT_EQ(First().replica, 1u);
  At(0).stale_share = 1;
  At(1).own_tokens[kHostTier] = 3900;
  EXPECT_EQ(First().replica, 0u) << "it must be able to show that it delivers again";
  EXPECT_NEAR(First().terms.trust, 0.5, 1e-9);
}

TEST_F(CertaintyTest, OfEqualCostsAnExactHolderComesFirst) {
  At(0).holder_state = At(1).holder_state = HolderState::kRecovering;
  for (snapshot_.random = 0; snapshot_.random < 50; ++snapshot_.random) {
    EXPECT_EQ(First().replica, 2u);
  }
}

TEST_F(CertaintyTest, RendezvousTakesASilentHolderOnlyWhereAllAreSilent) {
  At(1).holder_state = HolderState::kDegraded;
  std::set<size_t> winners;
  for (uint64_t prefix = 0; prefix < 100; ++prefix) {
    snapshot_.prefix_hash = prefix;
    winners.insert(First().replica);
  }
  EXPECT_EQ(winners, (std::set<size_t>{0, 2}));
  for (ReplicaView& replica : snapshot_.replicas) replica.holder_state = HolderState::kDegraded;
  for (uint64_t prefix = 0; prefix < 100; ++prefix) {
    snapshot_.prefix_hash = prefix;
    winners.insert(First().replica);
  }
  EXPECT_EQ(winners, (std::set<size_t>{0, 1, 2}));
}

TEST_F(SessionTest, WithoutALongMatchTheSessionDecidesInsteadOfHashing) {
  At(1).session_here = true;
  for (uint64_t prefix = 0; prefix < 50; ++prefix) {
    snapshot_.prefix_hash = prefix;
    EXPECT_EQ(First().replica, 1u);
    EXPECT_EQ(First().reason, RouteReason::kSession);
  }
}

TEST_F(SessionTest, ItsPullEndsAfterABoundedWait) {
  snapshot_.prefix_hash = 7;
  At(1).session_here = true;
  At(1).queued_prefill_tokens = 1999;
  EXPECT_EQ(First().replica, 1u);
  At(1).queued_prefill_tokens = 2001;
  EXPECT_NE(First().replica, 1u);
  EXPECT_EQ(First().reason, RouteReason::kRendezvous);
}

TEST_F(SessionTest, ItNeverPullsHarderThanWhatAHitThereWouldSave) {
  snapshot_.prompt_tokens = 100;  // 0.1 s to compute, ten times that is 1 s.
  snapshot_.prefix_hash = 7;
  At(1).session_here = true;
  At(1).queued_prefill_tokens = 999;
  EXPECT_EQ(First().replica, 1u);
  At(1).queued_prefill_tokens = 1001;
  EXPECT_NE(First().replica, 1u);
  EXPECT_NEAR(ChoiceOf(1).terms.session_seconds, -1, 1e-9);
  At(1).own_tokens[kHostTier] = 100;  // All is there: the session adds nothing.
  EXPECT_NEAR(ChoiceOf(1).terms.session_seconds, 0, 1e-9);
}

TEST_F(SessionTest, ALongerPrefixElsewhereOutweighsIt) {
  At(1).session_here = true;
  At(2).own_tokens[kHostTier] = 4000;  // Forty weighted seconds.
  EXPECT_EQ(First().replica, 2u);
  EXPECT_EQ(First().reason, RouteReason::kPrefix);
}

TEST_F(SessionTest, EqualPrefixesAreBrokenByItAndTheReasonSaysSo) {
  At(0).own_tokens[kHostTier] = At(1).own_tokens[kHostTier] = 10'000;
  At(1).session_here = true;
  for (snapshot_.random = 0; snapshot_.random < 50; ++snapshot_.random) {
    EXPECT_EQ(First().replica, 1u);
    EXPECT_EQ(First().reason, RouteReason::kSession);
  }
  At(0).own_tokens[kHostTier] = 5000;
  EXPECT_EQ(First().reason, RouteReason::kPrefix) << "it would have been first without it";
}

TEST_F(SessionTest, AReplicaThatIsOutPullsNothing) {
  snapshot_.prefix_hash = 7;
  At(1).session_here = true;
  At(1).available = false;
  EXPECT_NE(First().replica, 1u);
}

// Three veterans with about 10 s of queue each, and an empty newcomer; prompts of 1 s that nobody
// has anything of.
class GrowingFleet {
 public:
  GrowingFleet(const PrefixCostPolicy& policy, RouteSnapshot snapshot)
      : policy_(policy), snapshot_(std::move(snapshot)) {
    for (size_t i = 0; i < 3; ++i) snapshot_.replicas[i].queued_prefill_tokens = 10'000 + 300 * i;
    snapshot_.replicas.push_back(snapshot_.replicas[0]);
    snapshot_.replicas[kNewcomer].stable_hash = 77;
    snapshot_.replicas[kNewcomer].queued_prefill_tokens = 0;
    snapshot_.prompt_tokens = 1000;
  }

  // Sends prompts evenly over the time, in which queues are computed; how many go to the newcomer.
  int Send(int prompts, double seconds) {
    int sent = 0;
    for (int prompt = 0; prompt < prompts; ++prompt) {
      snapshot_.replicas[kNewcomer].age_seconds = now_seconds_;
      snapshot_.prefix_hash = ++snapshot_.random * 7919;
      const size_t chosen = policy_.Rank(snapshot_).front().replica;
      sent += chosen == kNewcomer ? 1 : 0;
      snapshot_.replicas[chosen].queued_prefill_tokens += snapshot_.prompt_tokens;
      now_seconds_ += seconds / prompts;
      for (ReplicaView& replica : snapshot_.replicas) {
        const auto computed = static_cast<uint64_t>(seconds / prompts * 1000);
        replica.queued_prefill_tokens -= std::min(replica.queued_prefill_tokens, computed);
      }
    }
    return sent;
  }

 private:
  static constexpr size_t kNewcomer = 3;
  const PrefixCostPolicy& policy_;
  RouteSnapshot snapshot_;
  double now_seconds_ = 0;
};

TEST_F(RampTest, ANewcomerDoesNotDrawAllMissesAtOnceAndComesToItsFairShare) {
  const PrefixCostPolicy no_ramp({.ramp_seconds = 0});
  EXPECT_GE(GrowingFleet(no_ramp, snapshot_).Send(10, 0.1), 9) << "nearly all without a ramp";
  GrowingFleet fleet(policy_, snapshot_);
  EXPECT_LE(fleet.Send(10, 0.1), 2);
  // As many as four replicas compute.
  const int while_it_is_new = fleet.Send(80, 20);
  EXPECT_GE(while_it_is_new, 10) << "it is not left idle";
  EXPECT_LE(while_it_is_new, 40);
  EXPECT_NEAR(fleet.Send(400, 100), 100, 5) << "a quarter";
}

TEST_F(RampTest, TheQueueOfANewcomerIsCountedLongerByLessAndLess) {
  At(0).queued_prefill_tokens = 4000;
  At(1).queued_prefill_tokens = 8000;
  At(2).age_seconds = 0;
  EXPECT_NEAR(ChoiceOf(2).terms.ramp_seconds, 6, 1e-9) << "the mean of the others";
  At(2).age_seconds = 10;
  EXPECT_NEAR(ChoiceOf(2).terms.ramp_seconds, 3, 1e-9);
  At(2).age_seconds = 20;
  EXPECT_NEAR(ChoiceOf(2).terms.ramp_seconds, 0, 1e-9);
  At(2).age_seconds = 1e9;
  EXPECT_NEAR(ChoiceOf(2).terms.ramp_seconds, 0, 1e-9);
}

TEST_F(RampTest, AmongIdleOnesANewcomerHasItsShareFromTheFirstPromptOn) {
  At(2).age_seconds = 0;
  std::array<int, 3> wins{};
  for (uint64_t prefix = 0; prefix < 3000; ++prefix) {
    snapshot_.prefix_hash = prefix;
    ++wins[First().replica];
  }
  for (const int won : wins) EXPECT_NEAR(won, 1000, 150);
}

TEST_F(RampTest, WhereAllAreNewNobodyIsHeldBack) {
  for (ReplicaView& replica : snapshot_.replicas) {
    replica.age_seconds = 1;
    replica.queued_prefill_tokens = 5000;
  }
  EXPECT_NEAR(First().terms.ramp_seconds, 0, 1e-9);
}

TEST_F(PreferredLabelTest, AReplicaThatLacksOneStandsAsIfItsQueueWereLonger) {
  for (const size_t replica : {0, 2}) At(replica).lacking_label_seconds = 3;
  At(1).queued_prefill_tokens = 2999;
  EXPECT_EQ(First().replica, 1u);
  snapshot_.prefix_hash = 7;
  EXPECT_EQ(First().replica, 1u) << "for hashing as well";
  At(1).queued_prefill_tokens = 3001;
  EXPECT_NE(First().replica, 1u);
  EXPECT_NEAR(First().terms.label_seconds, 3, 1e-9);
}

TEST_F(PreferredLabelTest, ItIsAWishAndNoTimeThatPasses) {
  At(0).lacking_label_seconds = 30;
  EXPECT_NEAR(ChoiceOf(0).terms.expected_ttft_seconds, 10, 1e-6);
}

TEST_F(DeadlineTest, ThoseThatAreExpectedToMakeItComeFirst) {
  At(0).own_tokens[kHostTier] = 9000;  // Best by cost: 8 s in line and 1 s to compute.
  At(0).queued_prefill_tokens = 8000;
  At(1).own_tokens[kHostTier] = 5000;  // 5 s.
  EXPECT_EQ(Order(), (std::vector<size_t>{0, 1, 2}));
  snapshot_.deadline_seconds = 6;
  EXPECT_EQ(Order(), (std::vector<size_t>{1, 0, 2}));
  EXPECT_NEAR(ChoiceOf(0).terms.expected_ttft_seconds, 9, 1e-6);
  snapshot_.deadline_seconds = 9.5;
  EXPECT_EQ(Order(), (std::vector<size_t>{0, 1, 2}));
}

TEST_F(DeadlineTest, IfNoneCanTheLeastExpectedTimeComesFirst) {
  At(0).own_tokens[kHostTier] = 9000;
  At(0).queued_prefill_tokens = 8000;  // 9 s.
  At(1).own_tokens[kHostTier] = 5000;  // 5 s.
  At(2).own_tokens[kHostTier] = 3000;  // 7 s.
  snapshot_.deadline_seconds = 1;
  EXPECT_EQ(Order(), (std::vector<size_t>{1, 2, 0}));
}

TEST_F(DeadlineTest, WhoseHolderIsOutStaysLastHoweverFast) {
  At(0).available = false;
  At(1).queued_prefill_tokens = At(2).queued_prefill_tokens = 5000;
  snapshot_.deadline_seconds = 12;
  EXPECT_EQ(Order().back(), 0u);
}

TEST_F(DeadlineTest, AFetchCountsAsItsTime) {
  At(0).own_tokens[kDiskTier] = 10'000;  // 5 s.
  EXPECT_NEAR(ChoiceOf(0).terms.fetch_seconds, 5, 1e-6);
  EXPECT_NEAR(ChoiceOf(0).terms.expected_ttft_seconds, 5, 1e-6);
  At(1).remote_tokens = 10'000;
  At(1).remote_tokens_per_second = 4000;
  EXPECT_NEAR(ChoiceOf(1).terms.fetch_seconds, 2.5, 1e-6);
  At(2).remote_tokens = 10'000;
  At(2).remote_tokens_per_second = 10;  // It is sooner computed.
  EXPECT_NEAR(ChoiceOf(2).terms.fetch_seconds, 0, 1e-6);
  EXPECT_NEAR(ChoiceOf(2).terms.compute_seconds, 10, 1e-6);
}

}  // namespace
}  // namespace cairn::router
