// Stories of what requests ask beside their prompt: labels, replicas to leave out, sessions,
// deadlines; and of what the router learns of replicas: how new, how stale, how fast.
#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "router/policy/policy_registry.h"
#include "tests/router/core/router_fixture.h"

namespace cairn::router {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

struct Wishes {
  std::string session = {};
  std::vector<Label> required = {};
  std::vector<PreferredLabel> preferred = {};
  std::vector<absl::string_view> excluded = {};
  std::optional<absl::Duration> deadline = std::nullopt;
  const RoutePolicy* policy = nullptr;
  std::string tenant = "acme";
};

class RouteWishesTest : public RouterFixture {
 protected:
  void SetUp() override {
    RouterFixture::SetUp();
    SetLabels(0, {{"zone", "a"}, {"gpu", "h200"}});
    SetLabels(1, {{"zone", "b"}, {"gpu", "h200"}});
    SetLabels(2, {{"zone", "b"}, {"gpu", "l4"}});
  }
  void SetLabels(int node, std::vector<std::pair<std::string, std::string>> labels) {
    ModelHolder::Identity identity = nodes_[static_cast<size_t>(node)].identity();
    identity.labels = std::move(labels);
    nodes_[static_cast<size_t>(node)] = ModelHolder(identity);
  }
  absl::StatusOr<RouteAnswer> TryAsk(uint32_t first, uint32_t count, const Wishes& wishes) {
    const auto keys = NumberedKeys(first, count);
    return core_->Route({.caller = "caller",
                         .tenant = wishes.tenant,
                         .fingerprint = kModel,
                         .keys = keys,
                         .policy = wishes.policy,
                         .request_id = "",
                         .session = wishes.session,
                         .required_labels = wishes.required,
                         .preferred_labels = wishes.preferred,
                         .excluded_workers = wishes.excluded,
                         .deadline = wishes.deadline});
  }
  RouteAnswer Ask(uint32_t first, uint32_t count, const Wishes& wishes) {
    auto answer = TryAsk(first, count, wishes);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return *std::move(answer);
  }
  static std::vector<std::string> Workers(const RouteAnswer& answer) {
    std::vector<std::string> workers;
    for (const RankedReplica& replica : answer.replicas) workers.push_back(replica.worker_address);
    return workers;
  }
  const RankedReplica& Of(const RouteAnswer& answer, const std::string& worker) {
    for (const RankedReplica& replica : answer.replicas) {
      if (replica.worker_address == worker) return replica;
    }
    ADD_FAILURE() << worker << " is not in the answer";
    return answer.replicas.front();
  }
  uint64_t Booked() { return core_->counters().bookings.booked; }
};

TEST_F(RouteWishesTest, OnlyReplicasWithAllRequiredLabelsAreAnswered) {
  Start();
  Put(0, 0, 10);
  EXPECT_THAT(Workers(Ask(0, 10, {.required = {{"zone", "b"}}})),
              UnorderedElementsAre("worker-1", "worker-2"));
  EXPECT_THAT(Workers(Ask(0, 10, {.required = {{"zone", "b"}, {"gpu", "l4"}}})),
              ElementsAre("worker-2"));
}

TEST_F(RouteWishesTest, LabelsThatNobodyHasAreSaidWithTheValuesThereAreAndBookNothing) {
  Start();
  const auto none = TryAsk(0, 10, {.required = {{"zone", "c"}, {"rack", "7"}}});
  EXPECT_EQ(none.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(none.status().message()),
              AllOf(HasSubstr("zone=c and rack=7"), HasSubstr("\"zone\" there are a, b"),
                    HasSubstr("no node has a label \"rack\"")));
  EXPECT_EQ(TryAsk(0, 10, {.required = {{"zone", "a"}, {"gpu", "l4"}}}).status().code(),
            absl::StatusCode::kFailedPrecondition)
      << "each is there, not together";
  EXPECT_EQ(Booked(), 0u);
  EXPECT_EQ(core_->counters().speculative_marks, 0u);
}

TEST_F(RouteWishesTest, ManyValuesOfALabelAreNotAllSaid) {
  options_.holder_addresses.clear();
  for (int i = 0; i < 12; ++i) {
    options_.holder_addresses.push_back("10.0.0." + std::to_string(i) + ":7000");
    if (i >= 3) nodes_.push_back(NodeAt(i));
    SetLabels(i, {{"rack", "r" + std::to_string(i)}});
  }
  Make();
  for (HolderIndex holder = 0; holder < 12; ++holder) Connect(holder);
  EXPECT_THAT(std::string(TryAsk(0, 1, {.required = {{"rack", "x"}}}).status().message()),
              HasSubstr("and 4 more"));
}

TEST_F(RouteWishesTest, APreferredLabelCountsAsSecondsOfQueue) {
  Start();
  for (uint32_t prompt = 0; prompt < 20; ++prompt) {
    const RouteAnswer answer = Ask(1000 * prompt, 10, {.preferred = {{{"zone", "a"}, 5}}});
    EXPECT_EQ(answer.replicas[0].worker_address, "worker-0");
    EXPECT_EQ(Of(answer, "worker-1").terms.label_seconds, 5);
    EXPECT_TRUE(Report(answer, OutcomePhase::kEnd));
  }
  // 8 s of queue there, and it is a wish: elsewhere is better.
  for (int i = 0; i < 16; ++i) Ask(90'000, 30, {.required = {{"zone", "a"}}});
  for (int i = 0; i < 16; ++i) Ask(95'000 + 100 * i, 30, {.required = {{"zone", "a"}}});
  EXPECT_NE(Ask(5, 10, {.preferred = {{{"zone", "a"}, 5}}}).replicas[0].worker_address, "worker-0");
}

TEST_F(RouteWishesTest, LabelsFollowTheNodesLastHello) {
  Start();
  core_->OnFeedBroken(0);
  SetLabels(0, {{"zone", "c"}});
  Connect(0);
  EXPECT_THAT(Workers(Ask(0, 10, {.required = {{"zone", "c"}}})), ElementsAre("worker-0"));
  EXPECT_FALSE(TryAsk(0, 10, {.required = {{"zone", "a"}}}).ok());
  for (const ReplicaStatus& replica : core_->ListReplicas()) {
    if (replica.worker_address != "worker-0") continue;
    EXPECT_THAT(replica.labels, ElementsAre(Label{"zone", "c"}));
  }
}

TEST_F(RouteWishesTest, AHelloWithLabelsOverTheBoundsIsRefused) {
  Start();
  core_->OnFeedBroken(0);
  SetLabels(0, {{"zone", "a"}, {"zone", "b"}});
  const auto refused = core_->OnFeed(0, nodes_[0].Hello());
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("\"zone\" is given twice"));
}

TEST_F(RouteWishesTest, ExcludedReplicasAreNeverAnsweredByAnyPolicy) {
  Start();
  Put(1, 0, 10);
  EXPECT_THAT(Workers(Ask(0, 10, {.excluded = {"worker-1", "worker-1", "worker-77"}})),
              UnorderedElementsAre("worker-0", "worker-2"));
  for (const absl::string_view name : RoutePolicyNames()) {
    const auto policy = *MakeRoutePolicy(name, {});
    const RouteAnswer answer = Ask(
        0, 10, {.required = {{"gpu", "h200"}}, .excluded = {"worker-1"}, .policy = policy.get()});
    EXPECT_THAT(Workers(answer), ElementsAre("worker-0")) << name;
    EXPECT_EQ(answer.policy, name);
  }
}

TEST_F(RouteWishesTest, AllExcludedIsUnavailableAndBooksNothing) {
  Start();
  const auto all = TryAsk(0, 10, {.excluded = {"worker-0", "worker-1", "worker-2"}});
  EXPECT_EQ(all.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(all.status().message()),
              AllOf(HasSubstr("excluded_workers"), HasSubstr("all 3 replicas are excluded")));
  const auto labelled = TryAsk(0, 10, {.required = {{"zone", "a"}}, .excluded = {"worker-0"}});
  EXPECT_THAT(std::string(labelled.status().message()),
              HasSubstr("all 1 replicas with the required labels are excluded"));
  EXPECT_EQ(Booked(), 0u);
}

TEST_F(RouteWishesTest, ASessionFollowsItsLastPrompt) {
  Start();
  std::string place = Ask(0, 2, {.session = "s"}).replicas[0].worker_address;
  for (uint32_t turn = 1; turn < 20; ++turn) {
    const RouteAnswer answer = Ask(1000 * turn, 2, {.session = "s"});
    EXPECT_EQ(answer.replicas[0].worker_address, place);
    EXPECT_EQ(answer.replicas[0].reason, RouteReason::kSession);
    EXPECT_TRUE(Report(answer, OutcomePhase::kEnd));
  }
  EXPECT_EQ(core_->counters().sessions, 1u);
}

TEST_F(RouteWishesTest, AnotherTenantsSessionOfThatNameGoesItsOwnWay) {
  Start();
  Ask(0, 2, {.session = "s"});
  for (uint32_t turn = 1; turn < 10; ++turn) {
    EXPECT_EQ(
        Ask(1000 * turn, 2, {.session = "s", .tenant = std::string(1, static_cast<char>(turn))})
            .replicas[0]
            .reason,
        RouteReason::kRendezvous);
  }
}

TEST_F(RouteWishesTest, ASessionMovesOnFromAReplicaThatIsExcludedOutOrDraining) {
  Start();
  const std::string first = Ask(0, 2, {.session = "s"}).replicas[0].worker_address;
  const std::string second =
      Ask(1000, 2, {.session = "s", .excluded = {first}}).replicas[0].worker_address;
  EXPECT_NE(second, first);
  EXPECT_EQ(Ask(2000, 2, {.session = "s"}).replicas[0].worker_address, second) << "it moved";
  const auto holder = static_cast<HolderIndex>(second.back() - '0');
  Feed(holder, {nodes_[holder].Heartbeat(v1::DRAIN_STATE_DRAINING)});
  core_->Tick();
  Feed(holder, {nodes_[holder].Heartbeat(v1::DRAIN_STATE_SERVING)});
  for (const RankedReplica& replica : Ask(3000, 2, {.session = "s"}).replicas) {
    EXPECT_NE(replica.reason, RouteReason::kSession) << "a drain freed it";
  }
  const std::string third = Ask(4000, 2, {.session = "s"}).replicas[0].worker_address;
  const auto third_holder = static_cast<HolderIndex>(third.back() - '0');
  core_->OnFeedBroken(third_holder);
  core_->Tick();
  const RouteAnswer answer = Ask(5000, 2, {.session = "s"});
  EXPECT_NE(answer.replicas[0].worker_address, third);
}

TEST_F(RouteWishesTest, SessionsAreForgottenAfterTheirTtl) {
  options_.sessions.ttl = absl::Seconds(3);
  Start();
  Ask(0, 2, {.session = "s"});
  Pass(absl::Seconds(3), {0, 1, 2});
  EXPECT_EQ(core_->counters().sessions, 0u);
  EXPECT_EQ(Ask(1000, 2, {.session = "s"}).replicas[0].reason, RouteReason::kRendezvous);
}

TEST_F(RouteWishesTest, TheDeadlineIsAtRiskWhereNobodyIsExpectedToMakeIt) {
  Start();
  // 2,560 tokens are 0.17 s of compute.
  EXPECT_FALSE(Ask(0, 10, {.deadline = absl::Milliseconds(300)}).deadline_at_risk);
  EXPECT_TRUE(Ask(0, 10, {.deadline = absl::Milliseconds(100)}).deadline_at_risk);
  EXPECT_FALSE(Ask(0, 10, {}).deadline_at_risk);
  EXPECT_EQ(core_->counters().deadlines_at_risk, 1u);
}

TEST_F(RouteWishesTest, ADeadlineBringsTheIdleBeforeThePrefixThatIsBusy) {
  Start();
  Put(0, 0, 100);
  for (uint32_t i = 0; i < 4; ++i) Ask(10'000 + 1000 * i, 100, {.required = {{"zone", "a"}}});
  EXPECT_EQ(FirstNode(Ask(0, 100, {})), "node-0") << "6.8 s of queue against 1.7 s saved, times 10";
  const RouteAnswer hurried = Ask(0, 100, {.deadline = absl::Seconds(4)});
  EXPECT_NE(FirstNode(hurried), "node-0");
  EXPECT_FALSE(hurried.deadline_at_risk);
  EXPECT_GT(Of(hurried, "worker-0").terms.expected_ttft_seconds, 6);
}

TEST_F(RouteWishesTest, ANodeThatComesLaterIsNewAndOneThatWasThereIsNot) {
  Make();
  Connect(0);
  Connect(1);
  core_->OnFeedBroken(2);
  ASSERT_TRUE(core_->Ready());
  for (uint32_t i = 0; i < 20; ++i) Ask(1000 * i, 100, {});
  Connect(2);
  const RouteAnswer early = Ask(50'000, 10, {});
  EXPECT_GT(Of(early, "worker-2").terms.ramp_seconds, 10);
  EXPECT_EQ(Of(early, "worker-0").terms.ramp_seconds, 0);
  core_->OnFeedBroken(2);
  Pass(absl::Seconds(15), {0, 1});
  Connect(2);
  EXPECT_LT(Of(Ask(51'000, 10, {}), "worker-2").terms.ramp_seconds,
            Of(early, "worker-2").terms.ramp_seconds * 0.6)
      << "of the same incarnation: it is as old as before";
  Pass(absl::Seconds(16), {0, 1, 2});
  EXPECT_EQ(Of(Ask(52'000, 10, {}), "worker-2").terms.ramp_seconds, 0);
}

TEST_F(RouteWishesTest, ANodeThatStartedAnewIsNewAgain) {
  Start();
  ASSERT_TRUE(core_->Ready());
  for (uint32_t i = 0; i < 20; ++i) Ask(1000 * i, 100, {});
  core_->OnFeedBroken(2);
  nodes_[2] = NodeAt(2, 'j');
  Connect(2);
  EXPECT_GT(Of(Ask(50'000, 10, {}), "worker-2").terms.ramp_seconds, 1);
}

TEST_F(RouteWishesTest, ACacheThatDoesNotDeliverIsTrustedLess) {
  Start();
  Put(0, 0, 100);
  for (int i = 0; i < 30; ++i) EXPECT_TRUE(Report(Route(0, 100), OutcomePhase::kEnd, 256));
  const RouteAnswer answer = Route(0, 100);
  EXPECT_LT(Of(answer, "worker-0").terms.trust, 0.7);
  EXPECT_GE(Of(answer, "worker-0").terms.trust, 0.5);
  EXPECT_EQ(Of(answer, "worker-1").terms.trust, 1);
  Put(1, 0, 80);
  EXPECT_EQ(FirstNode(Route(0, 100)), "node-1") << "fewer, and they will be there";
}

TEST_F(RouteWishesTest, OfEqualMatchesTheOneWhoseIndexIsExactComesFirst) {
  Start();
  Put(0, 0, 10);
  Put(1, 0, 10);
  Pass(absl::Milliseconds(1500), {1, 2});
  ASSERT_EQ(core_->StateOf(0), HolderState::kDegraded);
  for (int i = 0; i < 20; ++i) {
    const RouteAnswer answer = Route(0, 10);
    EXPECT_EQ(FirstNode(answer), "node-1");
    EXPECT_EQ(Of(answer, "worker-0").holder_state, HolderState::kDegraded);
    EXPECT_TRUE(Report(answer, OutcomePhase::kEnd, 2560));
  }
}

TEST_F(RouteWishesTest, ANodeSaysHowMuchKvItsWorkerHolds) {
  options_.replica_kv_tokens = 1'000'000;
  ModelHolder::Identity identity = nodes_[0].identity();
  identity.worker_kv_tokens = 3000;
  nodes_[0] = ModelHolder(identity);
  Start();
  for (const ReplicaStatus& replica : core_->ListReplicas()) {
    EXPECT_EQ(replica.kv_tokens_max, replica.worker_address == "worker-0" ? 3000u : 1'000'000u);
  }
  // 2,560 tokens run there: no second prompt fits.
  const RouteAnswer first = Ask(0, 10, {.required = {{"zone", "a"}}});
  EXPECT_TRUE(Report(first, OutcomePhase::kFirstToken));
  EXPECT_GT(Of(Ask(1000, 10, {}), "worker-0").terms.queued_seconds, 0.1);
}

TEST_F(RouteWishesTest, RatesAreLearnedOfEachReplicaFromThePriorOn) {
  options_.booking.prefill_tokens_per_second_prior = 10'000;
  Start();
  for (int i = 0; i < 60; ++i) {
    const RouteAnswer answer =
        Ask(static_cast<uint32_t>(1000 * i), 100, {.required = {{"zone", "a"}}});
    const auto known = core_->ReportOutcome({.booking = answer.booking,
                                             .router_incarnation = core_->incarnation(),
                                             .worker_address = "",
                                             .computed_tokens = 25'600,
                                             .compute_seconds = 25.6});
    ASSERT_TRUE(known.ok() && *known);
  }
  const RouteAnswer answer = Ask(500'000, 100, {});
  EXPECT_NEAR(Of(answer, "worker-0").terms.compute_seconds, 25.6, 1);
  EXPECT_NEAR(Of(answer, "worker-1").terms.compute_seconds, 2.56, 1e-6) << "nothing known of it";
  EXPECT_NE(FirstNode(answer), "node-0");
}

}  // namespace
}  // namespace cairn::router
