// A router before whole cache nodes: prompts go where their prefix is, and the index says what the
// nodes say, whichever of them is killed and started again.
#include <gmock/gmock.h>

#include <algorithm>
#include <deque>
#include <random>
#include <set>

#include "client/cpp/block_mirror.h"
#include "tests/router/service/real_node.h"
#include "tests/router/service/router_fixture.h"

namespace cairn::router {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

class RouteTest : public RouterTest {
 protected:
  static constexpr size_t kBlocks = 128;  // More than what counts as a short match.

  RouteTest() : space_(*NamespaceHandle::Make("model", testing::SampleNamespace())) {}

  void StartCluster(int nodes) {
    std::vector<std::string> addresses;
    for (int i = 0; i < nodes; ++i) {
      const std::string name(1, static_cast<char>('a' + i));
      nodes_.push_back(std::make_unique<RealNode>("node-" + name, "worker:" + name, parts_.parts(),
                                                  std::vector<std::string>{"zone=" + name}));
      nodes_.back()->Register(space_);
      addresses.push_back(nodes_.back()->address());
    }
    StartRouter(addresses);
    for (int i = 0; i < nodes; ++i) {
      ASSERT_TRUE(AwaitState(static_cast<HolderIndex>(i), HolderState::kExact));
    }
  }

  // `blocks` full blocks and half a block.
  Prompt MakePrompt(uint32_t seed, size_t blocks = kBlocks) {
    std::vector<uint32_t>& tokens = tokens_.emplace_back();
    std::mt19937 random(seed);
    for (size_t i = 0; i < blocks * space_.block_tokens() + 8; ++i) {
      tokens.push_back(static_cast<uint32_t>(random()));
    }
    const Region region{.scope = {"public", "", ""}, .tokens = tokens, .external_ids = {}};
    return *Prompt::Make(hasher_, space_, {&region, 1});
  }

  // Routes and ends the booking, so that nothing depends on what was routed before. No replicas
  // when it failed.
  cairn::RouteAnswer Route(const Prompt& prompt, const RouteOptions& options = {}) {
    const absl::StatusOr<cairn::RouteAnswer> answer = client_->Route(space_, prompt, options);
    EXPECT_TRUE(answer.ok()) << answer.status();
    if (!answer.ok()) return {};
    EXPECT_TRUE(client_->ReportOutcome({.booking = answer->booking}).value_or(false));
    return *answer;
  }

  std::string FirstWorker(const Prompt& prompt) {
    const cairn::RouteAnswer answer = Route(prompt);
    return answer.replicas.empty() ? "" : answer.replicas.front().worker_address;
  }

  // What the router has of each prompt at each node is what the node's own feed lists.
  bool IndexIsTheListing(const std::vector<Prompt>& prompts, RealNode* node) {
    BlockMirror mirror({});
    const SystemClock clock;
    const std::unique_ptr<BlockWatcher> watcher = node->client().WatchBlocks();
    while (!mirror.Exact()) {
      const auto message = watcher->Next(kLongest);
      if (!message.ok() || !message->has_value()) return false;
      if (!mirror.Apply(**message, clock.SteadyNow()).ok()) return false;
    }
    const std::string id = mirror.node()->node_id();
    for (const Prompt& prompt : prompts) {
      uint32_t listed = 0;
      while (listed < prompt.block_count() && mirror.TiersOf(prompt.keys()[listed]) != 0) ++listed;
      if (Indexed(prompt, id) != listed) return false;
    }
    const absl::StatusOr<ReplicaList> list = client_->ListReplicas();
    return list.ok() && std::any_of(list->replicas.begin(), list->replicas.end(),
                                    [&](const ReplicaEntry& replica) {
                                      return replica.node_id == id &&
                                             replica.blocks == mirror.block_count();
                                    });
  }

  uint32_t Indexed(const Prompt& prompt, const std::string& node_id) {
    const absl::StatusOr<PrefixAnswer> answer = client_->LookupPrefix(space_, prompt);
    if (!answer.ok()) return 0;
    for (const HolderPrefix& holder : answer->holders) {
      if (holder.node_id == node_id) return holder.blocks;
    }
    return 0;
  }

  const NamespaceHandle space_;
  Sha256BlockHasher hasher_;
  std::deque<std::vector<uint32_t>> tokens_;  // What prompts borrow.
  std::vector<std::unique_ptr<RealNode>> nodes_;
};

TEST_F(RouteTest, PromptGoesWhereItsPrefixWasPut) {
  StartCluster(3);
  for (uint32_t i = 0; i < 3; ++i) {
    const Prompt prompt = MakePrompt(i);
    nodes_[i]->Put(space_, prompt);
    const std::string id(1, static_cast<char>('a' + i));
    ASSERT_TRUE(Await([&] { return Indexed(prompt, "node-" + id) == kBlocks; }));
    const cairn::RouteAnswer answer = Route(prompt);
    ASSERT_THAT(answer.replicas, SizeIs(3));
    const RoutedReplica& first = answer.replicas.front();
    EXPECT_EQ(first.worker_address, "worker:" + id);
    EXPECT_EQ(first.node_id, "node-" + id);
    EXPECT_THAT(first.node_addresses, ElementsAre(nodes_[i]->address()));
    EXPECT_EQ(first.reason, v1::ROUTE_REASON_PREFIX);
    ASSERT_THAT(first.matched, SizeIs(1));
    EXPECT_EQ(first.matched[0].tier, v1::TIER_HOST);
    EXPECT_EQ(first.matched[0].tokens, kBlocks * space_.block_tokens());
    EXPECT_FALSE(answer.degraded);
  }
}

TEST_F(RouteTest, ARequestMayNameThePolicyThatRanksForIt) {
  StartCluster(3);
  const Prompt prompt = MakePrompt(1);
  nodes_[2]->Put(space_, prompt);
  ASSERT_TRUE(Await([&] { return Indexed(prompt, "node-c") == kBlocks; }));
  std::set<std::string> in_turn;
  for (int i = 0; i < 3; ++i) {
    const cairn::RouteAnswer answer = Route(prompt, {.policy = "round_robin"});
    ASSERT_THAT(answer.replicas, SizeIs(3));
    in_turn.insert(answer.replicas.front().node_id);
  }
  EXPECT_THAT(in_turn, SizeIs(3)) << "whatever they hold";
  EXPECT_EQ(FirstWorker(prompt), "worker:c") << "those that name none are ranked as before";
}

TEST_F(RouteTest, LabelsOfNodesAreRequiredPreferredAndListed) {
  StartCluster(3);
  const auto first = [this](const RouteOptions& options) {
    return Route(MakePrompt(77), options).replicas.front();
  };
  EXPECT_EQ(first({.required_labels = {{"zone", "b"}}}).worker_address, "worker:b");
  const RoutedReplica preferred = first({.preferred_labels = {{{"zone", "c"}, 30}}});
  EXPECT_EQ(preferred.worker_address, "worker:c");
  EXPECT_EQ(preferred.terms.label_seconds(), 0);
  const absl::Status none =
      client_->Route(space_, MakePrompt(77), {.required_labels = {{"zone", "x"}}}).status();
  EXPECT_EQ(none.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(none.message()), ::testing::HasSubstr("there are a, b, c"));
  const absl::StatusOr<ReplicaList> list = client_->ListReplicas();
  ASSERT_TRUE(list.ok()) << list.status();
  for (const ReplicaEntry& replica : list->replicas) {
    EXPECT_THAT(replica.labels, ElementsAre(Label{"zone", replica.node_id.substr(5)}));
    EXPECT_EQ(replica.kv_tokens_max, 1u << 20);
  }
}

TEST_F(RouteTest, AnAnswerSaysWhatEachPlaceWasMadeOf) {
  StartCluster(2);
  const Prompt prompt = MakePrompt(5);
  nodes_[0]->Put(space_, prompt);
  ASSERT_TRUE(Await([&] { return Indexed(prompt, "node-a") == kBlocks; }));
  const cairn::RouteAnswer answer = Route(prompt, {.deadline = absl::Milliseconds(1)});
  EXPECT_EQ(answer.policy, "prefix_cost");
  EXPECT_EQ(answer.score_unit, "weighted seconds");
  EXPECT_TRUE(answer.deadline_at_risk);
  ASSERT_THAT(answer.replicas, SizeIs(2));
  EXPECT_LT(answer.replicas[0].score, answer.replicas[1].score);
  EXPECT_GT(answer.replicas[0].terms.fetch_seconds(), 0);
  EXPECT_EQ(answer.replicas[1].terms.fetch_seconds(), 0);
  EXPECT_GT(answer.replicas[1].terms.compute_seconds(), answer.replicas[0].terms.compute_seconds());
  EXPECT_EQ(answer.replicas[0].terms.trust(), 1);
  EXPECT_EQ(answer.replicas[0].holder_state, v1::HOLDER_STATE_EXACT);
  EXPECT_EQ(Route(prompt, {.policy = "linear_cost"}).score_unit, "blocks");
}

TEST_F(RouteTest, ASessionComesBackAndMovesOnFromWhereItFailed) {
  StartCluster(3);
  const std::string first =
      Route(MakePrompt(1, 2), {.session_id = "chat"}).replicas.front().worker_address;
  for (uint32_t turn = 2; turn < 8; ++turn) {
    const RoutedReplica next = Route(MakePrompt(turn, 2), {.session_id = "chat"}).replicas.front();
    EXPECT_EQ(next.worker_address, first);
    EXPECT_EQ(next.reason, v1::ROUTE_REASON_SESSION);
  }
  const RouteOptions failed_there = {.session_id = "chat", .excluded_workers = {first}};
  const std::string second = Route(MakePrompt(8, 2), failed_there).replicas.front().worker_address;
  EXPECT_NE(second, first);
  EXPECT_EQ(Route(MakePrompt(9, 2), {.session_id = "chat"}).replicas.front().worker_address,
            second);
}

TEST_F(RouteTest, TokensAreHashedToTheSameKeys) {
  StartCluster(1);
  const Prompt prompt = MakePrompt(1);
  nodes_[0]->Put(space_, prompt);
  ASSERT_TRUE(Await([&] { return Indexed(prompt, "node-a") == kBlocks; }));
  for (const bool by_tokens : {false, true}) {
    const cairn::RouteAnswer answer = Route(prompt, {.by_tokens = by_tokens});
    ASSERT_THAT(answer.replicas, SizeIs(1));
    EXPECT_EQ(answer.replicas.front().MatchedTokens(), kBlocks * space_.block_tokens());
  }
}

TEST_F(RouteTest, PromptWithoutAFullBlockIsRoutedByLoad) {
  StartCluster(2);
  const cairn::RouteAnswer answer = Route(MakePrompt(1, 0));
  ASSERT_THAT(answer.replicas, SizeIs(2));
  EXPECT_EQ(answer.replicas.front().MatchedTokens(), 0u);
  EXPECT_FALSE(answer.degraded);
}

TEST_F(RouteTest, UnknownNamespaceIsRoutedByLoadAndSaid) {
  StartCluster(2);
  Namespace fields = testing::SampleNamespace();
  fields.model = "another";
  const NamespaceHandle unknown = *NamespaceHandle::Make("another", fields);
  for (const bool by_tokens : {false, true}) {
    const absl::StatusOr<cairn::RouteAnswer> answer =
        client_->Route(unknown, MakePrompt(1), {.by_tokens = by_tokens});
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_THAT(answer->replicas, SizeIs(2));
    EXPECT_EQ(answer->replicas.front().MatchedTokens(), 0u);
    EXPECT_TRUE(answer->degraded);
  }
  EXPECT_FALSE(client_->LookupPrefix(unknown, MakePrompt(1))->namespace_known);
  EXPECT_EQ(client_->LookupPrefix(unknown, MakePrompt(1))->blocks_total, kBlocks);
}

TEST_F(RouteTest, RequestsThatBeginAlikeGoTogetherBeforeAnyFeedSaysSo) {
  StartCluster(3);
  const Prompt prompt = MakePrompt(1);
  const absl::StatusOr<cairn::RouteAnswer> first = client_->Route(space_, prompt);
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(
      client_->ReportOutcome({.booking = first->booking, .phase = v1::OUTCOME_PHASE_FIRST_TOKEN})
          .value());
  const absl::StatusOr<cairn::RouteAnswer> second = client_->Route(space_, prompt);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->replicas.front().worker_address, first->replicas.front().worker_address);
  EXPECT_EQ(second->replicas.front().coming_tokens, kBlocks * space_.block_tokens());
}

TEST_F(RouteTest, KilledNodeIsLastWithinTwoSeconds) {
  StartCluster(3);
  const Prompt prompt = MakePrompt(1);
  nodes_[1]->Put(space_, prompt);
  ASSERT_TRUE(Await([&] { return FirstWorker(prompt) == "worker:b"; }));
  nodes_[1]->Kill();
  EXPECT_TRUE(Await(
      [&] {
        const cairn::RouteAnswer answer = Route(prompt);
        return answer.replicas.size() == 3 && answer.replicas.back().worker_address == "worker:b" &&
               answer.replicas.back().reason == v1::ROUTE_REASON_HOLDER_OUT &&
               answer.replicas.back().MatchedTokens() == 0;
      },
      absl::Seconds(2)));
}

TEST_F(RouteTest, WithoutAnyLivingNodeTheLastKnownReplicasAreAnswered) {
  StartCluster(2);
  for (const auto& node : nodes_) node->Kill();
  EXPECT_TRUE(AwaitState(0, HolderState::kOut));
  EXPECT_TRUE(AwaitState(1, HolderState::kOut));
  const cairn::RouteAnswer answer = Route(MakePrompt(1));
  EXPECT_THAT(answer.replicas, SizeIs(2));
  EXPECT_TRUE(answer.degraded);
}

TEST_F(RouteTest, IndexIsTheListingOfARestartedNode) {
  StartCluster(2);
  std::vector<Prompt> prompts;
  for (uint32_t i = 0; i < 6; ++i) prompts.push_back(MakePrompt(i, 8));
  for (const Prompt& prompt : prompts) nodes_[0]->Put(space_, prompt);
  nodes_[1]->Put(space_, prompts[0]);
  for (const auto& node : nodes_) {
    EXPECT_TRUE(Await([&] { return IndexIsTheListing(prompts, node.get()); }));
  }
  nodes_[0]->Restart();
  nodes_[0]->Register(space_);
  nodes_[0]->Put(space_, prompts[3]);
  EXPECT_TRUE(Await([&] { return IndexIsTheListing(prompts, nodes_[0].get()); }));
  EXPECT_EQ(Indexed(prompts[3], "node-a"), 8u);
  EXPECT_EQ(Indexed(prompts[0], "node-a"), 0u);
  EXPECT_EQ(Indexed(prompts[0], "node-b"), 8u);
}

TEST_F(RouteTest, RestartedRouterHasTheIndexWhenItSaysReady) {
  StartCluster(2);
  std::vector<Prompt> prompts;
  for (uint32_t i = 0; i < 8; ++i) {
    prompts.push_back(MakePrompt(i, 8));
    nodes_[i % 2]->Put(space_, prompts.back());
  }
  const Incarnation before = client_->ListReplicas()->router_incarnation;
  StartRouter({nodes_[0]->address(), nodes_[1]->address()});
  ASSERT_TRUE(Await([&] { return Serving("readiness"); }));
  for (uint32_t i = 0; i < 8; ++i) {
    EXPECT_EQ(Indexed(prompts[i], i % 2 == 0 ? "node-a" : "node-b"), 8u);
  }
  EXPECT_NE(client_->ListReplicas()->router_incarnation, before);
}

TEST_F(RouteTest, RouterWithoutANodeSaysThatNoReplicaIsKnown) {
  nodes_.push_back(std::make_unique<RealNode>("node-a", "worker:a", parts_.parts()));
  nodes_[0]->Kill();
  StartRouter({nodes_[0]->address()});
  EXPECT_EQ(
      client_->Route(space_, MakePrompt(1), {.timeout = absl::Milliseconds(300)}).status().code(),
      absl::StatusCode::kUnavailable);
  nodes_[0]->Restart();
  EXPECT_TRUE(client_->Route(space_, MakePrompt(1)).ok()) << "and is asked again until one is";
}

}  // namespace
}  // namespace cairn::router
