// Snapshots made by hand, ranked by the policy alone: queues, matches, rendezvous, who is out.
#include "router/policy/prefix_cost_policy.h"

#include <gmock/gmock.h>

#include <array>
#include <set>

#include "tests/router/policy/prefix_cost_fixture.h"

namespace cairn::router {
namespace {

using PrefixCostPolicyTest = PrefixCostFixture;

TEST_F(PrefixCostPolicyTest, TheLongestPrefixWinsAmongEqualQueues) {
  At(1).own_tokens[kHostTier] = 4000;
  At(2).own_tokens[kHostTier] = 6000;
  const auto ranked = policy_.Rank(snapshot_);
  EXPECT_EQ(Order(), (std::vector<size_t>{2, 1, 0}));
  EXPECT_NEAR(ranked[0].score, 10 * 4.0, 1e-6);
  EXPECT_NEAR(ranked[2].score, 10 * 10.0, 1e-6);
  EXPECT_EQ(ranked[0].reason, RouteReason::kPrefix);
  EXPECT_EQ(ranked[2].reason, RouteReason::kLoad);
}

TEST_F(PrefixCostPolicyTest, AffinityEndsWhereTheExtraWaitExceedsTheWeightTimesTheSaving) {
  At(0).own_tokens[kHostTier] = 2000;  // Saves 2 s.
  At(0).queued_prefill_tokens = 19'999;
  EXPECT_EQ(First().replica, 0u);
  At(0).queued_prefill_tokens = 20'001;
  EXPECT_NE(First().replica, 0u);
}

TEST_F(PrefixCostPolicyTest, BlocksThatAreBeingWrittenCountAsOwn) {
  At(2).coming_tokens = 4000;
  EXPECT_EQ(First().replica, 2u);
  EXPECT_EQ(First().reason, RouteReason::kPrefix);
}

TEST_F(PrefixCostPolicyTest, ASlowTierCostsItsFetch) {
  At(0).own_tokens[kDiskTier] = 6000;  // 3 s to fetch, 4 s to compute.
  At(1).own_tokens[kHostTier] = 4000;  // 6 s to compute.
  EXPECT_EQ(First().replica, 1u);
  EXPECT_NEAR(policy_.Rank(snapshot_)[1].score, 10 * 7.0, 1e-6);
}

TEST_F(PrefixCostPolicyTest, AnotherNodesBlocksCostTheirTransferOrTheirComputeIfThatIsLess) {
  At(0).remote_tokens = 8000;
  At(0).remote_tokens_per_second = 4000;
  EXPECT_NEAR(First().score, 10 * (2.0 + 2.0), 1e-6);
  At(0).remote_tokens_per_second = 10;
  EXPECT_NEAR(policy_.Rank(snapshot_)[0].score, 10 * 10.0, 1e-6);
}

TEST_F(PrefixCostPolicyTest, RunningDecodesCountABit) {
  At(0).running_kv_tokens = 1000;
  At(1).running_kv_tokens = 2000;
  EXPECT_EQ(Order(), (std::vector<size_t>{2, 0, 1}));
}

TEST_F(PrefixCostPolicyTest, KvThatDoesNotFitIsWaitedFor) {
  At(0).kv_tokens_max = 12'000;
  At(0).own_tokens[kHostTier] = 5000;
  At(0).running_kv_tokens = 2000;
  EXPECT_EQ(First().replica, 0u);
  EXPECT_LT(First().terms.queued_seconds, 1);
  At(0).running_kv_tokens = 12'000;
  EXPECT_GE(First().terms.queued_seconds, 10);
  snapshot_.output_tokens = 60'000;
  EXPECT_NE(First().replica, 0u);
}

// All wait for KV anyhow: how much is booked beyond that does not drive a prompt from its prefix.
TEST_F(PrefixCostPolicyTest, WhereKvIsShortEverywhereThePrefixDecides) {
  for (size_t i = 0; i < 3; ++i) {
    At(i).kv_tokens_max = 12'000;
    At(i).running_kv_tokens = 52'000;
  }
  At(0).own_tokens[kHostTier] = 5000;
  At(0).running_kv_tokens = 112'000;
  EXPECT_EQ(First().replica, 0u);
}

TEST_F(PrefixCostPolicyTest, ReplicasWhoseHolderIsOutComeLastWhateverTheirCost) {
  At(0).available = false;
  At(1).queued_prefill_tokens = 1'000'000;
  At(2).queued_prefill_tokens = 1'000'000;
  const auto ranked = policy_.Rank(snapshot_);
  EXPECT_EQ(ranked[2].replica, 0u);
  EXPECT_EQ(ranked[2].reason, RouteReason::kHolderOut);
}

TEST_F(PrefixCostPolicyTest, WithNoHolderInTheLeastLoadedComesFirst) {
  for (ReplicaView& replica : snapshot_.replicas) replica.available = false;
  snapshot_.prefix_hash = 1;
  At(0).queued_prefill_tokens = 2000;
  At(2).queued_prefill_tokens = 1000;
  EXPECT_EQ(Order(), (std::vector<size_t>{1, 2, 0}));
  EXPECT_EQ(First().reason, RouteReason::kHolderOut);
}

TEST_F(PrefixCostPolicyTest, EqualCostsAreBrokenAtRandom) {
  std::array<int, 3> wins{};
  for (snapshot_.random = 0; snapshot_.random < 3000; ++snapshot_.random) ++wins[First().replica];
  for (const int won : wins) EXPECT_NEAR(won, 1000, 150);
}

TEST_F(PrefixCostPolicyTest, AShortMatchGoesByRendezvousTheSameWayEachTime) {
  At(0).own_tokens[kHostTier] = 512;
  std::array<int, 3> wins{};
  for (uint64_t prefix = 0; prefix < 3000; ++prefix) {
    snapshot_.prefix_hash = prefix;
    const RankedChoice first = First();
    EXPECT_EQ(first.reason, RouteReason::kRendezvous);
    snapshot_.random += 7;
    EXPECT_EQ(First().replica, first.replica);
    ++wins[first.replica];
  }
  for (const int won : wins) EXPECT_NEAR(won, 1000, 150);
}

TEST_F(PrefixCostPolicyTest, AReplicaThatLeavesMovesOnlyItsOwnPrefixes) {
  for (uint64_t prefix = 0; prefix < 200; ++prefix) {
    snapshot_.prefix_hash = prefix;
    At(2).available = true;
    const size_t before = First().replica;
    At(2).available = false;
    if (before == 2) continue;
    EXPECT_EQ(First().replica, before);
  }
}

TEST_F(PrefixCostPolicyTest, RendezvousIsAmongTheLeastQueuedOnly) {
  At(0).queued_prefill_tokens = 5000;
  At(1).queued_prefill_tokens = 200;  // Within a tenth of the prompt of the shortest queue.
  const PrefixCostPolicy with_slack({.queue_slack_prompts = 0.1});
  std::set<size_t> winners;
  std::set<size_t> winners_with_slack;
  for (uint64_t prefix = 0; prefix < 100; ++prefix) {
    snapshot_.prefix_hash = prefix;
    winners.insert(First().replica);
    winners_with_slack.insert(with_slack.Rank(snapshot_).front().replica);
  }
  EXPECT_EQ(winners, (std::set<size_t>{2}));
  EXPECT_EQ(winners_with_slack, (std::set<size_t>{1, 2}));
}

TEST_F(PrefixCostPolicyTest, AmongIdleOnesTheMuchSlowerGetsNoneAndTheLittleSlowerItsShare) {
  At(0).prefill_tokens_per_second = 400;  // 25 s against 10: ten over the 15 that are allowed.
  At(1).prefill_tokens_per_second = 700;
  std::array<int, 3> wins{};
  for (uint64_t prefix = 0; prefix < 1000; ++prefix) {
    snapshot_.prefix_hash = prefix;
    ++wins[First().replica];
  }
  EXPECT_EQ(wins[0], 0);
  EXPECT_NEAR(wins[1], 500, 100);
  At(1).queued_prefill_tokens = At(2).queued_prefill_tokens = 10'001;
  EXPECT_EQ(First().replica, 0u) << "as soon as it begins sooner by as much";
}

TEST_F(PrefixCostPolicyTest, AMatchIsShortUnderTheSmallerOfTheTwoBounds) {
  snapshot_.prefix_hash = 5;
  At(0).own_tokens[kHostTier] = 1023;
  EXPECT_EQ(First().reason, RouteReason::kRendezvous);
  At(0).own_tokens[kHostTier] = 1024;
  EXPECT_EQ(First().reason, RouteReason::kPrefix);
  snapshot_.prompt_tokens = 2000;
  At(0).own_tokens[kHostTier] = 499;
  EXPECT_EQ(First().reason, RouteReason::kRendezvous);
  At(0).own_tokens[kHostTier] = 500;
  EXPECT_EQ(First().reason, RouteReason::kPrefix);
}

// What router/policy/README.md works out.
TEST(PrefixCostExample, OfTheReadmeHolds) {
  RouteSnapshot snapshot;
  snapshot.prompt_tokens = 30'000;
  snapshot.prefix_hash = 1;
  snapshot.transfer.own = {1e9, 200'000, 25'000};
  snapshot.replicas.resize(2);
  for (ReplicaView& replica : snapshot.replicas) {
    replica.available = true;
    replica.prefill_tokens_per_second = 15'000;
  }
  ReplicaView& a = snapshot.replicas[0];
  a.own_tokens[kHostTier] = 24'000;
  a.queued_prefill_tokens = a.running_kv_tokens = 60'000;
  const PrefixCostPolicy policy({});
  const std::vector<RankedChoice> ranked = policy.Rank(snapshot);
  EXPECT_EQ(ranked[0].replica, 0u);
  EXPECT_NEAR(ranked[0].score, 9.24, 1e-9);
  EXPECT_NEAR(ranked[0].terms.expected_ttft_seconds, 4.56, 1e-9);
  EXPECT_NEAR(ranked[1].score, 20, 1e-9);
  EXPECT_EQ(PrefixCostPolicy({.miss_weight = 2}).Rank(snapshot)[0].replica, 1u);
  snapshot.deadline_seconds = 3;
  EXPECT_EQ(policy.Rank(snapshot)[0].replica, 1u);
  snapshot.deadline_seconds.reset();
  a.own_tokens[kHostTier] = 1000;
  EXPECT_EQ(policy.Rank(snapshot)[0].reason, RouteReason::kRendezvous);
  EXPECT_EQ(policy.Rank(snapshot)[0].replica, 1u);
}

TEST_F(PrefixCostPolicyTest, NothingToRankIsNoError) {
  snapshot_.replicas.clear();
  snapshot_.prefix_hash = 1;
  EXPECT_TRUE(policy_.Rank(snapshot_).empty());
  snapshot_.prompt_tokens = 0;
  snapshot_.replicas.emplace_back().prefill_tokens_per_second = 1;
  EXPECT_EQ(policy_.Rank(snapshot_).size(), 1u);
}

}  // namespace
}  // namespace cairn::router
