// Cases that other routers pin in their tests, in our words, where they need an index, bookings or
// keys: P6 to P10. Those of policies alone are in tests/router/policy/peer_policy_cases_test.cc.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "common/identity/block_hasher.h"
#include "common/identity/key_chain.h"
#include "tests/router/core/router_fixture.h"

namespace cairn::router {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class PeerCasesTest : public RouterFixture {
 protected:
  // Keys of regions of blocks of two tokens, all in the tenant's own scope.
  static std::vector<BlockKey> KeysOf(const std::vector<std::vector<uint32_t>>& regions) {
    const Sha256BlockHasher hasher;
    std::vector<Region> parts;
    for (const std::vector<uint32_t>& tokens : regions) {
      Region& region = parts.emplace_back();
      region.scope.tenant = "acme";
      region.tokens = tokens;
    }
    const auto keys =
        PromptKeys(hasher, {.fingerprint = NumberedFingerprint(1), .block_tokens = 2}, parts, {});
    EXPECT_TRUE(keys.ok()) << keys.status();
    return *keys;
  }
  uint64_t Booked() { return core_->counters().bookings.booked; }
};

TEST_F(PeerCasesTest, P6NoReplicaIsUnavailable) {
  Make();
  EXPECT_EQ(TryRoute(0, 4).status().code(), absl::StatusCode::kUnavailable);
  Start();
  for (HolderIndex holder = 0; holder < 3; ++holder) core_->OnFeedBroken(holder);
  const RouteAnswer answer = Route(0, 4);
  EXPECT_TRUE(answer.degraded) << "ours: the last known replicas are answered all the same";
  EXPECT_THAT(answer.replicas, SizeIs(3));
}

// P7: there a request may hold several prompts with a chain each. Ours holds one prompt of one or
// two regions; a second region has its own scope and so its own keys, even under the same tenant,
// and blocks found in both add up.
TEST_F(PeerCasesTest, P7TwoRegionsAreAnotherChainThanOneAndTheirBlocksAddUp) {
  const std::vector<BlockKey> one = KeysOf({{1, 2, 3, 4}});
  const std::vector<BlockKey> two = KeysOf({{1, 2}, {3, 4}});
  ASSERT_THAT(one, SizeIs(2));
  ASSERT_THAT(two, SizeIs(2));
  EXPECT_EQ(one[0], two[0]);
  EXPECT_NE(one[1], two[1]);

  Start();
  const std::vector<BlockKey> keys = KeysOf({{1, 2, 3, 4, 5, 6}, {7, 8, 9, 10}});
  ASSERT_THAT(keys, SizeIs(5));
  Feed(1, nodes_[1].Set(keys, kInHost, kModel, "acme"));
  const LookupAnswer found = core_->LookupPrefix("acme", kModel, keys);
  ASSERT_THAT(found.holders, SizeIs(1));
  EXPECT_EQ(found.holders[0].blocks, 5u) << "three and two";
}

// P8: there a cap cuts what is hashed. Ours cuts nothing: all blocks are matched, the first four
// say where a prompt belongs while nobody has it, and what is over a message's bound is
// INVALID_ARGUMENT (BadInputTest).
TEST_F(PeerCasesTest, P8AllBlocksAreMatchedAndFourOfThemSayWhereAPromptBelongs) {
  Start();
  std::vector<std::string> places;
  for (uint32_t tail = 0; tail < 10; ++tail) {
    std::vector<BlockKey> keys = NumberedKeys(0, 4);
    for (const BlockKey& key : NumberedKeys(1000 * (tail + 1), 40)) keys.push_back(key);
    const auto answer = core_->Route({.caller = "caller",
                                      .tenant = "acme",
                                      .fingerprint = kModel,
                                      .keys = keys,
                                      .request_id = ""});
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(answer->replicas[0].reason, RouteReason::kRendezvous);
    places.push_back(answer->replicas[0].node_id);
    EXPECT_TRUE(Report(*answer, OutcomePhase::kEnd));
    Pass(absl::Seconds(5), {0, 1, 2});
  }
  EXPECT_THAT(places, ::testing::Each(places.front()));
  Put(2, 50'000, 5000);
  EXPECT_EQ(Route(50'000, 5000).replicas[0].matched.total(), 5000u * kBlockTokens);
}

// P9: asking only books no load; what is pinned and missing is an error and no silent detour.
TEST_F(PeerCasesTest, P9AskingOnlyBooksNothingAndAPinThatIsMissingIsAnError) {
  Start();
  Put(0, 0, 10);
  core_->LookupPrefix("acme", kModel, NumberedKeys(0, 20));
  EXPECT_EQ(Booked(), 0u);
  EXPECT_EQ(core_->counters().speculative_marks, 0u);
  for (const ReplicaStatus& replica : core_->ListReplicas()) EXPECT_EQ(replica.load.requests, 0u);

  const auto keys = NumberedKeys(0, 10);
  const std::vector<Label> rank = {{"rank", "3"}};
  const auto pinned = core_->Route({.caller = "caller",
                                    .tenant = "acme",
                                    .fingerprint = kModel,
                                    .keys = keys,
                                    .request_id = "",
                                    .required_labels = rank});
  EXPECT_EQ(pinned.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Booked(), 0u);
}

TEST_F(PeerCasesTest, P9OverloadBeatsAffinity) {
  Start();
  Put(0, 0, 40);
  for (uint32_t prompt = 0; prompt < 100; ++prompt) Route(0, 40);
  EXPECT_EQ(FirstNode(Route(0, 40)), "node-0") << "what is there costs no queue";
  const std::vector<absl::string_view> others = {"worker-1", "worker-2"};
  for (uint32_t prompt = 1; prompt <= 20; ++prompt) {
    const auto keys = NumberedKeys(10'000 * prompt, 40);
    ASSERT_TRUE(core_
                    ->Route({.caller = "caller",
                             .tenant = "acme",
                             .fingerprint = kModel,
                             .keys = keys,
                             .request_id = "",
                             .excluded_workers = others})
                    .ok());
  }
  EXPECT_NE(FirstNode(Route(0, 40)), "node-0") << "13 s in line against 0.7 s saved, times 10";
}

// P10: a node that restarted empty. Until its feed says so the router may send to it: the request
// is served there as a miss. The new incarnation drops all that was held, and the feed heals the
// rest.
TEST_F(PeerCasesTest, P10ANodeThatRestartedEmptyIsAMissAndHealsByItsFeed) {
  Start();
  Put(0, 0, 40);
  const RouteAnswer stale = Route(0, 40);
  EXPECT_EQ(FirstNode(stale), "node-0");
  EXPECT_TRUE(Report(stale, OutcomePhase::kEnd, /*cached=*/0)) << "it had nothing";
  core_->OnFeedBroken(0);
  nodes_[0] = NodeAt(0, 'j');
  Connect(0);
  EXPECT_EQ(core_->StateOf(0), HolderState::kExact);
  EXPECT_THAT(core_->LookupPrefix("acme", kModel, NumberedKeys(0, 40)).holders, IsEmpty());
  const RouteAnswer miss = Route(0, 40);
  EXPECT_EQ(miss.replicas[0].matched.total(), 0u);
  EXPECT_THAT(miss.replicas, SizeIs(3)) << "its worker is still there";
  EXPECT_TRUE(Report(miss, OutcomePhase::kEnd));
  Pass(absl::Seconds(5), {0, 1, 2});
  Put(0, 0, 40);
  EXPECT_EQ(FirstNode(Route(0, 40)), "node-0");
}

}  // namespace
}  // namespace cairn::router
