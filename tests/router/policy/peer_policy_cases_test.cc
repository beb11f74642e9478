// Cases that other routers pin in their tests (SGLang's gateway, Dynamo's selector, llm-d's
// scorers), in our words and over our policies: snapshots made by hand. Where our contract differs,
// the case says how and pins ours. P7's chains, P8 and the parts of P9 and P10 that need an index
// and bookings are in tests/router/core/peer_cases_test.cc.
#include <gmock/gmock.h>

#include <set>
#include <string>

#include "router/policy/bounded_load_policy.h"
#include "router/policy/policy_registry.h"

namespace cairn::router {
namespace {

RouteSnapshot Idle(size_t replicas, uint64_t prompt_tokens) {
  RouteSnapshot snapshot;
  snapshot.prompt_tokens = prompt_tokens;
  snapshot.block_tokens = 10;
  snapshot.prefix_hash = 77;
  snapshot.transfer.own = {1e12, 1e12, 1e12};
  for (uint64_t i = 0; i < replicas; ++i) {
    ReplicaView view;
    view.stable_hash = 1000 + i;
    view.available = true;
    view.prefill_tokens_per_second = 1000;
    snapshot.replicas.push_back(view);
  }
  return snapshot;
}

std::vector<RankedChoice> Rank(const RouteSnapshot& snapshot,
                               absl::string_view policy = kDefaultRoutePolicy) {
  return (*MakeRoutePolicy(policy, {}))->Rank(snapshot);
}

size_t First(const RouteSnapshot& snapshot, absl::string_view policy = kDefaultRoutePolicy) {
  return Rank(snapshot, policy).front().replica;
}

double ScoreOf(size_t replica, const RouteSnapshot& snapshot, absl::string_view policy) {
  for (const RankedChoice& choice : Rank(snapshot, policy)) {
    if (choice.replica == replica) return choice.score;
  }
  ADD_FAILURE() << replica << " is not ranked";
  return 0;
}

// P1, weights by tier. There a block scores 1 on the GPU and 0.5 on the CPU, the best tier counts,
// and what does not begin at block 0 counts nothing. Ours: the index gives each block its fastest
// tier and none after a hole (block_holders_test), linear_cost gives credit 1, 0.75 and 0.25, and
// the default asks what a fetch takes in seconds instead of a weight.
TEST(PeerPolicyCases, P1ABlockInASlowerTierIsWorthLess) {
  RouteSnapshot snapshot = Idle(2, 60);
  snapshot.replicas[0].own_tokens[kDeviceTier] = 30;
  const double on_device = ScoreOf(0, snapshot, "linear_cost");
  EXPECT_EQ(ScoreOf(1, snapshot, "linear_cost") - on_device, 3) << "three blocks";
  snapshot.replicas[0].own_tokens = {20, 10, 0};
  EXPECT_EQ(ScoreOf(0, snapshot, "linear_cost") - on_device, 0.25);
  snapshot.transfer.own = {1e12, 2000, 1e12};
  const double fetched = ScoreOf(0, snapshot, "prefix_cost");
  snapshot.replicas[0].own_tokens = {30, 0, 0};
  EXPECT_NEAR(fetched - ScoreOf(0, snapshot, "prefix_cost"), 10 * 10.0 / 2000, 1e-9);
}

// P2, equal overlap goes to the idle one; with equal loads there, to the smaller tree. Ours: at
// random, since the smaller tree is often the one that just failed (sglang #14532); the newest
// replica is held back instead (RampTest).
TEST(PeerPolicyCases, P2EqualOverlapGoesToTheIdleOneAndEqualLoadsAreBrokenAtRandom) {
  RouteSnapshot snapshot = Idle(2, 1000);
  for (ReplicaView& replica : snapshot.replicas) replica.own_tokens[kDeviceTier] = 900;
  snapshot.replicas[0].queued_prefill_tokens = 10;
  EXPECT_EQ(First(snapshot), 1u);
  snapshot.replicas[0].queued_prefill_tokens = 0;
  std::set<size_t> winners;
  for (snapshot.random = 0; snapshot.random < 50; ++snapshot.random) {
    winners.insert(First(snapshot));
  }
  EXPECT_EQ(winners, (std::set<size_t>{0, 1}));
}

TEST(PeerPolicyCases, P2APromptShorterThanABlockGoesToTheLeastLoaded) {
  RouteSnapshot snapshot = Idle(3, 7);
  snapshot.prefix_hash.reset();
  snapshot.replicas[0].queued_prefill_tokens = 50;
  snapshot.replicas[2].queued_prefill_tokens = 60;
  for (const absl::string_view policy : {"prefix_cost", "least_loaded", "product", "preble"}) {
    EXPECT_EQ(First(snapshot, policy), 1u) << policy;
  }
}

// P3, affinity ends where loads differ by more than an absolute and a relative bound. Ours ends
// where the extra wait exceeds the weight times what the hit saves: seconds, not requests, so a
// long match is worth a longer wait and a short one gives way sooner.
TEST(PeerPolicyCases, P3ImbalanceEndsAffinityAndALittleOfItDoesNot) {
  RouteSnapshot snapshot = Idle(2, 2000);
  snapshot.replicas[0].own_tokens[kDeviceTier] = 1500;  // Saves 1.5 s: worth 15 s in line.
  snapshot.replicas[0].queued_prefill_tokens = 20'000;
  EXPECT_EQ(First(snapshot), 1u) << "20 s against none";
  snapshot.replicas[1].queued_prefill_tokens = 17'000;
  EXPECT_EQ(First(snapshot), 0u) << "20 s against 17";
}

// P4: bounded loads, 1.25 times the mean of what is queued.
TEST(PeerPolicyCases, P4ABoundedLoadIsAcceptedUpToTheBound) {
  RouteSnapshot snapshot = Idle(4, 0);
  const size_t home = First(snapshot, "bounded_load");
  const auto queue = [&snapshot, home](uint64_t at_home) {
    for (ReplicaView& replica : snapshot.replicas) replica.queued_prefill_tokens = 0;
    snapshot.replicas[home].queued_prefill_tokens = at_home;
    snapshot.replicas[(home + 1) % 4].queued_prefill_tokens = 100 - at_home;
  };
  queue(30);
  EXPECT_EQ(First(snapshot, "bounded_load"), home) << "30 of 100 over four: 31.25 are allowed";
  queue(35);
  EXPECT_NE(First(snapshot, "bounded_load"), home);
  EXPECT_TRUE(Rank(Idle(0, 10), "bounded_load").empty());
  EXPECT_EQ(Rank(Idle(1, 0), "bounded_load").size(), 1u) << "nothing queued anywhere";
}

// P5, a match ratio of 0.3 or 0.5 switches from load to affinity. Ours: the smaller of a quarter of
// the prompt and 1,024 tokens, and beyond it cost decides, not the match alone.
TEST(PeerPolicyCases, P5AMatchUnderTheBoundDoesNotHoldAPrompt) {
  RouteSnapshot snapshot = Idle(2, 2000);
  snapshot.replicas[0].own_tokens[kDeviceTier] = 490;
  snapshot.replicas[0].queued_prefill_tokens = 10;
  EXPECT_EQ(First(snapshot), 1u) << "the least queued";
  snapshot.replicas[0].own_tokens[kDeviceTier] = 500;
  EXPECT_EQ(First(snapshot), 0u);
  snapshot.prompt_tokens = 100'000;
  snapshot.replicas[0].own_tokens[kDeviceTier] = 1024;
  EXPECT_EQ(First(snapshot), 0u) << "1 % of a long prompt is long enough";
}

// P6: a replica that leaves moves its own prompts only, and gets them back. No replica at all is
// UNAVAILABLE (peer_cases_test); where all are out they are still answered, marked DEGRADED.
TEST(PeerPolicyCases, P6OneThatLeavesMovesItsOwnPromptsAndGetsThemBack) {
  for (const absl::string_view policy : {"prefix_cost", "bounded_load"}) {
    RouteSnapshot snapshot = Idle(8, 1000);
    int moved = 0;
    for (uint64_t prompt = 0; prompt < 400; ++prompt) {
      snapshot.prefix_hash = prompt * 7919 + 1;
      const size_t before = First(snapshot, policy);
      snapshot.replicas[3].available = false;
      const size_t without = First(snapshot, policy);
      EXPECT_NE(without, 3u);
      EXPECT_EQ(before == 3, before != without) << policy;
      moved += before != without ? 1 : 0;
      snapshot.replicas[3].available = true;
      EXPECT_EQ(First(snapshot, policy), before) << policy;
    }
    EXPECT_NEAR(moved, 50, 30) << policy;
  }
}

// P9: overload beats affinity, whatever the match.
TEST(PeerPolicyCases, P9OverloadBeatsAffinity) {
  RouteSnapshot snapshot = Idle(2, 1000);
  snapshot.replicas[0].own_tokens[kDeviceTier] = 1000;
  snapshot.replicas[0].queued_prefill_tokens = 9999;
  EXPECT_EQ(First(snapshot), 0u);
  snapshot.replicas[0].queued_prefill_tokens = 10'001;
  EXPECT_EQ(First(snapshot), 1u);
}

}  // namespace
}  // namespace cairn::router
