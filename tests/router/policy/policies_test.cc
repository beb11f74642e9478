// The policies beside the default: snapshots made by hand, what is chosen and in which order the
// rest follows.
#include <gmock/gmock.h>

#include <map>
#include <set>
#include <string>

#include "router/policy/bounded_load_policy.h"
#include "router/policy/policy_registry.h"
#include "router/policy/ranking.h"

namespace cairn::router {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

RouteSnapshot Snapshot(size_t replicas) {
  RouteSnapshot snapshot;
  snapshot.prompt_tokens = 1000;
  snapshot.block_tokens = 10;
  snapshot.prefix_hash = 77;
  for (uint64_t i = 0; i < replicas; ++i) {
    ReplicaView view;
    view.stable_hash = 1000 + i;
    view.available = true;
    view.prefill_tokens_per_second = 1000;
    snapshot.replicas.push_back(view);
  }
  return snapshot;
}

std::vector<RankedChoice> Rank(absl::string_view policy, const RouteSnapshot& snapshot) {
  return (*MakeRoutePolicy(policy, {}))->Rank(snapshot);
}

size_t First(absl::string_view policy, const RouteSnapshot& snapshot) {
  return Rank(policy, snapshot).front().replica;
}

class EachRoutePolicyTest : public ::testing::TestWithParam<std::string> {};

TEST_P(EachRoutePolicyTest, RanksEachReplicaOnceThoseThatAreOutLast) {
  RouteSnapshot snapshot = Snapshot(5);
  snapshot.replicas[1].available = false;
  snapshot.replicas[3].available = false;
  snapshot.replicas[1].own_tokens[kHostTier] = 900;  // Not to be followed there.
  snapshot.replicas[2].queued_prefill_tokens = 400;
  const std::vector<RankedChoice> ranked = Rank(GetParam(), snapshot);
  std::set<size_t> seen;
  for (const RankedChoice& choice : ranked) seen.insert(choice.replica);
  EXPECT_EQ(seen.size(), 5u);
  ASSERT_EQ(ranked.size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(ranked[i].reason == RouteReason::kHolderOut, i >= 3) << i;
  }
}

TEST_P(EachRoutePolicyTest, IsAFunctionOfTheSnapshot) {
  RouteSnapshot snapshot = Snapshot(7);
  snapshot.random = 12345;
  snapshot.sequence = 3;
  std::vector<size_t> first;
  std::vector<size_t> again;
  for (const RankedChoice& choice : Rank(GetParam(), snapshot)) first.push_back(choice.replica);
  for (const RankedChoice& choice : Rank(GetParam(), snapshot)) again.push_back(choice.replica);
  EXPECT_EQ(first, again);
}

TEST_P(EachRoutePolicyTest, NobodyAndNothingQueuedAndNoFullBlockAreNoTrouble) {
  EXPECT_TRUE(Rank(GetParam(), Snapshot(0)).empty());
  RouteSnapshot out = Snapshot(2);
  out.replicas[0].available = out.replicas[1].available = false;
  EXPECT_EQ(Rank(GetParam(), out).size(), 2u);
  RouteSnapshot tiny = Snapshot(3);
  tiny.prompt_tokens = 1;
  tiny.prefix_hash.reset();
  tiny.block_tokens = 0;
  EXPECT_EQ(Rank(GetParam(), tiny).size(), 3u);
}

TEST_P(EachRoutePolicyTest, ThoseThatMissTheDeadlineComeAfterTheOthersTheFastestFirst) {
  RouteSnapshot snapshot = Snapshot(5);
  snapshot.replicas[0].queued_prefill_tokens = 9000;
  snapshot.replicas[2].queued_prefill_tokens = 5000;
  snapshot.replicas[4].queued_prefill_tokens = 7000;
  snapshot.replicas[2].own_tokens[kDeviceTier] = 1000;  // Which some would follow.
  snapshot.transfer.own = {1e12, 1e12, 1e12};
  snapshot.deadline_seconds = 2;
  std::vector<size_t> order;
  for (const RankedChoice& choice : Rank(GetParam(), snapshot)) order.push_back(choice.replica);
  EXPECT_THAT((std::set<size_t>{order[0], order[1]}), ElementsAre(1, 3));
  EXPECT_THAT((std::vector<size_t>{order[2], order[3], order[4]}), ElementsAre(2, 4, 0));
}

TEST_P(EachRoutePolicyTest, SaysWhatItsScoresAreInAndOfWhatEachTimeIsMade) {
  RouteSnapshot snapshot = Snapshot(2);
  snapshot.replicas[0].queued_prefill_tokens = 3000;
  snapshot.replicas[1].own_tokens[kHostTier] = 600;
  snapshot.transfer.own = {1e12, 6000, 1e12};
  EXPECT_FALSE((*MakeRoutePolicy(GetParam(), {}))->score_unit().empty());
  for (const RankedChoice& choice : Rank(GetParam(), snapshot)) {
    const RouteTerms& terms = choice.terms;
    const bool first = choice.replica == 0;
    EXPECT_NEAR(terms.queued_seconds, first ? 3 : 0, 1e-9);
    EXPECT_NEAR(terms.compute_seconds, first ? 1 : 0.4, 1e-9);
    EXPECT_NEAR(terms.fetch_seconds, first ? 0 : 0.1, 1e-9);
    EXPECT_NEAR(terms.expected_ttft_seconds, first ? 4 : 0.5, 1e-9);
    EXPECT_EQ(terms.trust, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(EachPolicy, EachRoutePolicyTest, ::testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const absl::string_view name : RoutePolicyNames()) {
                             names.emplace_back(name);
                           }
                           return names;
                         }()),
                         [](const auto& instance) { return instance.param; });

TEST(RoutePolicyRegistryTest, AnUnknownNameIsToldTheNamesThereAre) {
  const auto policy = MakeRoutePolicy("fastest", {});
  EXPECT_EQ(policy.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(policy.status().message()),
              AllOf(HasSubstr("\"fastest\""), HasSubstr("prefix_cost"), HasSubstr("round_robin")));
  EXPECT_EQ(RoutePolicyNames().front(), kDefaultRoutePolicy);
  for (const absl::string_view name : RoutePolicyNames()) {
    EXPECT_EQ((*MakeRoutePolicy(name, {}))->name(), name);
  }
}

TEST(RoundRobinPolicyTest, TakesTurnsAmongThoseThatAreIn) {
  RouteSnapshot snapshot = Snapshot(4);
  snapshot.replicas[2].available = false;
  std::vector<size_t> chosen;
  for (snapshot.sequence = 0; snapshot.sequence < 6; ++snapshot.sequence) {
    chosen.push_back(First("round_robin", snapshot));
  }
  EXPECT_THAT(chosen, ElementsAre(0, 1, 3, 0, 1, 3));
}

TEST(RandomPolicyTest, SpreadsAlike) {
  RouteSnapshot snapshot = Snapshot(4);
  std::map<size_t, int> chosen;
  for (snapshot.random = 1; snapshot.random <= 4000; ++snapshot.random) {
    ++chosen[First("random", snapshot)];
  }
  for (const auto& [replica, times] : chosen) EXPECT_NEAR(times, 1000, 120) << replica;
}

TEST(LeastLoadedPolicyTest, TheShortestQueueInSecondsThenTheFewestRequests) {
  RouteSnapshot snapshot = Snapshot(3);
  snapshot.replicas[0].queued_prefill_tokens = 3000;
  snapshot.replicas[0].prefill_tokens_per_second = 10'000;  // 0.3 s.
  snapshot.replicas[1].queued_prefill_tokens = 400;         // 0.4 s.
  snapshot.replicas[2].queued_prefill_tokens = 2000;
  EXPECT_EQ(First("least_loaded", snapshot), 0u);
  for (ReplicaView& replica : snapshot.replicas) replica.queued_prefill_tokens = 0;
  snapshot.replicas[0].requests = snapshot.replicas[2].requests = 2;
  EXPECT_EQ(First("least_loaded", snapshot), 1u);
}

TEST(LongestMatchPolicyTest, FollowsThePrefixWhateverTheQueue) {
  RouteSnapshot snapshot = Snapshot(3);
  snapshot.replicas[1].own_tokens[kHostTier] = 20;
  snapshot.replicas[1].queued_prefill_tokens = 1'000'000;
  EXPECT_EQ(First("longest_match", snapshot), 1u);
  snapshot.replicas[2].own_tokens[kHostTier] = 20;
  EXPECT_EQ(First("longest_match", snapshot), 2u) << "of equal ones the idle";
}

TEST(BoundedLoadPolicyTest, TheHashedReplicaTakesAllUpToTheBoundThenTheNextOne) {
  RouteSnapshot snapshot = Snapshot(4);
  snapshot.prompt_tokens = 0;
  const size_t home = First("bounded_load", snapshot);
  // 100 queued over four: the bound is 31.25.
  for (ReplicaView& replica : snapshot.replicas) replica.queued_prefill_tokens = 70 / 3;
  snapshot.replicas[home].queued_prefill_tokens = 30;
  EXPECT_EQ(First("bounded_load", snapshot), home);
  for (ReplicaView& replica : snapshot.replicas) replica.queued_prefill_tokens = 65 / 3;
  snapshot.replicas[home].queued_prefill_tokens = 35;
  EXPECT_NE(First("bounded_load", snapshot), home);
}

TEST(BoundedLoadPolicyTest, AReplicaThatLeavesMovesItsOwnPromptsOnly) {
  RouteSnapshot snapshot = Snapshot(5);
  std::map<uint64_t, size_t> before;
  for (uint64_t prompt = 0; prompt < 200; ++prompt) {
    snapshot.prefix_hash = prompt * 7919;
    before[prompt] = First("bounded_load", snapshot);
  }
  snapshot.replicas[2].available = false;
  for (uint64_t prompt = 0; prompt < 200; ++prompt) {
    snapshot.prefix_hash = prompt * 7919;
    if (before[prompt] == 2) continue;
    EXPECT_EQ(First("bounded_load", snapshot), before[prompt]);
  }
}

TEST(LinearCostPolicyTest, QueuedMissingAndDecodingBlocksAddUp) {
  RouteSnapshot snapshot = Snapshot(3);
  snapshot.replicas[0].own_tokens[kDeviceTier] = 400;
  snapshot.replicas[1].own_tokens[kHostTier] = 400;
  snapshot.replicas[2].own_tokens[kDiskTier] = 400;
  std::vector<double> costs(3);
  for (const RankedChoice& choice : Rank("linear_cost", snapshot)) {
    costs[choice.replica] = choice.score;
  }
  EXPECT_THAT(costs, ElementsAre(60, 70, 90));
  snapshot.replicas[0].queued_prefill_tokens = 100;
  snapshot.replicas[0].running_kv_tokens = 300;  // The queued ones among them.
  EXPECT_EQ(First("linear_cost", snapshot), 1u);
}

TEST(ProductPolicyTest, ABusyReplicaMustSaveALargerShare) {
  RouteSnapshot snapshot = Snapshot(2);
  snapshot.replicas[0].own_tokens[kHostTier] = 600;  // 400 to compute.
  snapshot.replicas[0].requests = 1;                 // 400 * 2 against 1000 * 1.
  EXPECT_EQ(First("product", snapshot), 0u);
  snapshot.replicas[0].requests = 2;
  EXPECT_EQ(First("product", snapshot), 1u);
}

TEST(PreblePolicyTest, ExploitsALongMatchAndExploresWithAShortOne) {
  RouteSnapshot snapshot = Snapshot(3);
  snapshot.replicas[0].own_tokens[kHostTier] = 510;
  snapshot.replicas[0].queued_prefill_tokens = 1500;
  snapshot.replicas[1].queued_prefill_tokens = 900;
  EXPECT_EQ(First("preble", snapshot), 0u) << "more than half is there";
  snapshot.replicas[0].own_tokens[kHostTier] = 490;
  EXPECT_EQ(First("preble", snapshot), 2u) << "less than half is";
  snapshot.replicas[0].own_tokens[kHostTier] = 510;
  snapshot.replicas[0].queued_prefill_tokens = 50'000;
  EXPECT_EQ(First("preble", snapshot), 2u) << "it is loaded far over the mean";
}

}  // namespace
}  // namespace cairn::router
