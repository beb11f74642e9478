// Stories of requests: who is ranked where and why, what is booked, and what reports change.
#include <gmock/gmock.h>

#include "tests/router/core/router_fixture.h"

namespace cairn::router {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using RouterCoreTest = RouterFixture;

TEST_F(RouterCoreTest, RoutesToTheReplicaWithTheLongestPrefix) {
  Start();
  Put(0, 0, 4);
  Put(1, 0, 10);
  const RouteAnswer answer = Route(0, 12);
  ASSERT_THAT(answer.replicas, SizeIs(3));
  const RankedReplica& first = answer.replicas[0];
  EXPECT_EQ(first.worker_address, "worker-1");
  EXPECT_EQ(first.node_id, "node-1");
  EXPECT_THAT(first.node_addresses, ElementsAre("10.0.0.1:7000"));
  EXPECT_EQ(first.matched.fed[kHostTier], 10 * kBlockTokens);
  EXPECT_EQ(first.reason, RouteReason::kPrefix);
  EXPECT_EQ(answer.replicas[1].node_id, "node-0");
  EXPECT_FALSE(answer.degraded);
}

TEST_F(RouterCoreTest, AnotherTenantsBlocksAreNotSeenAndPublicOnesAre) {
  Start();
  Put(0, 0, 8, "rival");
  Put(1, 100, 8, "public");
  EXPECT_EQ(Route(0, 8).replicas[0].matched.total(), 0u);
  EXPECT_EQ(FirstNode(Route(100, 8)), "node-1");
  EXPECT_THAT(core_->LookupPrefix("acme", kModel, NumberedKeys(0, 8)).holders, IsEmpty());
  EXPECT_THAT(core_->LookupPrefix("rival", kModel, NumberedKeys(0, 8)).holders, SizeIs(1));
}

TEST_F(RouterCoreTest, ASiblingOfARequestThatWasJustRoutedFollowsIt) {
  Start();
  const RouteAnswer first = Route(0, 20);
  for (int i = 0; i < 5; ++i) {
    const RouteAnswer sibling = Route(0, 20);
    EXPECT_EQ(FirstNode(sibling), FirstNode(first));
    EXPECT_EQ(sibling.replicas[0].matched.coming, 20 * kBlockTokens);
  }
  EXPECT_THAT(core_->LookupPrefix("acme", kModel, NumberedKeys(0, 20)).holders, IsEmpty());
}

TEST_F(RouterCoreTest, BookingsAreLoadUntilTheyAreReported) {
  Start();
  const RouteAnswer answer = Route(0, 20);
  const auto load_of = [&](const std::string& worker) {
    for (const ReplicaStatus& replica : core_->ListReplicas()) {
      if (replica.worker_address == worker) return replica.load;
    }
    return ReplicaLoad{};
  };
  const std::string worker = answer.replicas[0].worker_address;
  EXPECT_EQ(load_of(worker).prefill_tokens, 20 * kBlockTokens);
  EXPECT_TRUE(Report(answer, OutcomePhase::kFirstToken));
  EXPECT_EQ(load_of(worker).prefill_tokens, 0u);
  EXPECT_EQ(load_of(worker).kv_tokens, 20 * kBlockTokens);
  EXPECT_TRUE(Report(answer, OutcomePhase::kEnd));
  EXPECT_EQ(load_of(worker).kv_tokens, 0u);
  EXPECT_FALSE(Report(answer, OutcomePhase::kEnd));
}

TEST_F(RouterCoreTest, AnotherIncarnationsBookingIsOkAndOnlyCounted) {
  Start();
  const RouteAnswer answer = Route(0, 4);
  const auto known = core_->ReportOutcome(
      {.booking = answer.booking, .router_incarnation = {}, .worker_address = ""});
  ASSERT_TRUE(known.ok());
  EXPECT_FALSE(*known);
  EXPECT_EQ(core_->counters().reports_of_other_incarnations, 1u);
  EXPECT_TRUE(Report(answer, OutcomePhase::kEnd));
}

TEST_F(RouterCoreTest, ARetryGetsTheSameAnswerAndAnotherRequestUnderItsIdIsRefused) {
  Start();
  const auto first = TryRoute(0, 4, "id-1");
  const auto again = TryRoute(0, 4, "id-1");
  ASSERT_TRUE(first.ok() && again.ok());
  EXPECT_EQ(again->booking, first->booking);
  EXPECT_EQ(core_->counters().bookings.booked, 1u);
  EXPECT_EQ(TryRoute(0, 5, "id-1").status().code(), absl::StatusCode::kInvalidArgument);
  Pass(absl::Minutes(1), {0, 1, 2});
  const auto later = TryRoute(0, 4, "id-1");
  ASSERT_TRUE(later.ok());
  EXPECT_NE(later->booking, first->booking);
}

TEST_F(RouterCoreTest, BookingsThatAreNeverReportedEndByThemselves) {
  options_.booking.prefill_ttl = absl::Seconds(5);
  Start();
  Route(0, 20);
  EXPECT_EQ(core_->counters().speculative_marks, 20u);
  Pass(absl::Seconds(5), {0, 1, 2});
  for (const ReplicaStatus& replica : core_->ListReplicas()) {
    EXPECT_EQ(replica.load.kv_tokens, 0u);
  }
  EXPECT_EQ(core_->counters().bookings.expired, 1u);
  EXPECT_EQ(core_->counters().speculative_marks, 0u);
}

TEST_F(RouterCoreTest, ARequestThatAnotherReplicaTookLeavesNoMarksAtTheFirst) {
  Start();
  const RouteAnswer answer = Route(0, 20);
  EXPECT_TRUE(Report(answer, OutcomePhase::kFirstToken, 0, answer.replicas[1].worker_address));
  EXPECT_EQ(core_->counters().speculative_marks, 0u);
}

TEST_F(RouterCoreTest, PredictedMinusDeliveredRaisesTheAlarm) {
  Start();
  Put(0, 0, 100);
  for (int i = 0; i < 10; ++i) {
    const RouteAnswer answer = Route(0, 100);
    EXPECT_TRUE(Report(answer, OutcomePhase::kEnd, 100 * kBlockTokens));
  }
  EXPECT_FALSE(core_->counters().stale_alarm);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(Report(Route(0, 100), OutcomePhase::kEnd, 256));
  EXPECT_TRUE(core_->counters().stale_alarm);
}

TEST_F(RouterCoreTest, ANamespaceThatNoHolderKnowsIsDegradedAndSaysSo) {
  Start();
  const auto keys = NumberedKeys(0, 4);
  const auto answer = core_->Route({.caller = "c",
                                    .tenant = "acme",
                                    .fingerprint = NumberedFingerprint(9),
                                    .keys = keys,
                                    .prompt_tokens = 100,
                                    .request_id = ""});
  ASSERT_TRUE(answer.ok());
  EXPECT_TRUE(answer->degraded);
  EXPECT_FALSE(core_->LookupPrefix("acme", NumberedFingerprint(9), keys).namespace_known);
  EXPECT_EQ(core_->BlockTokens(NumberedFingerprint(9)), std::nullopt);
  EXPECT_EQ(core_->BlockTokens(kModel), kBlockTokens);
}

TEST_F(RouterCoreTest, BlocksOfAnotherNodeAreOfferedWhereWorkersCanReadThem) {
  options_.remote_tokens_per_second = 1e6;
  Start();
  Put(0, 0, 40);
  Put(1, 0, 10);
  for (const RankedReplica& replica : Route(0, 40).replicas) {
    if (replica.node_id == "node-0") {
      EXPECT_EQ(replica.remote_tokens, 0u);
    } else {
      EXPECT_EQ(replica.remote_node_id, "node-0");
      EXPECT_EQ(replica.remote_tokens + replica.matched.total(), 40 * kBlockTokens);
    }
  }
}

TEST_F(RouterCoreTest, LookupPrefixGivesTheLongestFirst) {
  Start();
  Put(0, 0, 3);
  Put(2, 0, 7);
  const LookupAnswer answer = core_->LookupPrefix("acme", kModel, NumberedKeys(0, 10));
  EXPECT_TRUE(answer.namespace_known);
  ASSERT_THAT(answer.holders, SizeIs(2));
  EXPECT_EQ(answer.holders[0].node_id, "node-2");
  EXPECT_EQ(answer.holders[0].blocks, 7u);
  EXPECT_EQ(answer.holders[0].state, HolderState::kExact);
  EXPECT_EQ(answer.holders[1].matched.fed[kHostTier], 3 * kBlockTokens);
}

TEST_F(RouterCoreTest, WrongRequestsAreRefusedWithAClearStatus) {
  Make();
  EXPECT_EQ(TryRoute(0, 4).status().code(), absl::StatusCode::kUnavailable);
  Start();
  const auto keys = NumberedKeys(0, 4);
  const auto too_short = core_->Route({.caller = "c",
                                       .tenant = "acme",
                                       .fingerprint = kModel,
                                       .keys = keys,
                                       .prompt_tokens = 1023,
                                       .request_id = ""});
  EXPECT_THAT(too_short.status().message(), AllOf(HasSubstr("1023"), HasSubstr("1024")));
  const auto bad_seconds = core_->ReportOutcome(
      {.booking = {}, .router_incarnation = {}, .worker_address = "", .compute_seconds = -1});
  EXPECT_EQ(bad_seconds.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(RouterCoreTest, OptionsThatCannotWorkAreRefused) {
  const auto refused = [this] {
    return !RouterCore::Make(options_, std::make_unique<PrefixCostPolicy>(PrefixCostOptions{}),
                             &clock_, &random_)
                .ok();
  };
  EXPECT_FALSE(refused());
  options_.tick_advance_max = absl::Seconds(1);
  EXPECT_TRUE(refused());
  options_.tick_advance_max = absl::Milliseconds(1);
  options_.booking.prefill_tokens_per_second_prior = 0;
  EXPECT_TRUE(refused());
  options_.booking.prefill_tokens_per_second_prior = 1;
  options_.holder_addresses = {"a:1", "a:1"};
  EXPECT_TRUE(refused());
}

}  // namespace
}  // namespace cairn::router
