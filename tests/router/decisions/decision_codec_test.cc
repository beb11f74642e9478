// Every field of a snapshot and an answer, each of another value than its default, to bytes and
// back; and values that no router writes, one at a time, each named when it is refused. A member
// that is added to a struct stops this file from compiling, as it stops the codec.
#include "router/decisions/decision_codec.h"

#include <gmock/gmock.h>

#include <limits>

#include "tests/router/decisions/sample_decisions.h"

namespace cairn::router {
namespace {

using ::testing::HasSubstr;

Decision FullDecision() {
  Decision decision;
  decision.time = absl::FromUnixMillis(1'800'000'000'123);
  decision.booking = NumberedBooking(9);
  decision.fingerprint.bytes.fill(3);
  decision.policy = "preble";
  decision.degraded = true;
  decision.snapshot = FullSnapshot();
  decision.ranked = {FullChoice(1), FullChoice(0)};
  decision.replicas = {11, 22};
  return decision;
}

v1::Decision MessageOf(const Decision& decision) {
  v1::Decision message;
  ToMessage(decision, &message);
  return message;
}

v1::Decision ThroughBytes(const v1::Decision& message) {
  v1::Decision read;
  EXPECT_TRUE(read.ParseFromString(message.SerializeAsString()));
  return read;
}

TEST(DecisionCodecTest, TheSampleSaysEveryFieldOfAView) {
  const ReplicaView sample = FullView(100);
  const ReplicaView fresh;
  const auto& [a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15] = sample;
  const auto& [b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15] = fresh;
  EXPECT_TRUE(a0 != b0 && a1 != b1 && a2 != b2 && a3 != b3 && a4 != b4 && a5 != b5);
  EXPECT_TRUE(a6 != b6 && a7 != b7 && a8 != b8 && a9 != b9 && a10 != b10 && a11 != b11);
  EXPECT_TRUE(a12 != b12 && a13 != b13 && a14 != b14 && a15 != b15);
}

TEST(DecisionCodecTest, TheSampleSaysEveryFieldOfASnapshotAndOfAChoice) {
  const RouteSnapshot sample = FullSnapshot();
  const RouteSnapshot fresh;
  const auto& [a0, a1, a2, a3, a4, a5, a6, a7, a8] = sample;
  const auto& [b0, b1, b2, b3, b4, b5, b6, b7, b8] = fresh;
  EXPECT_TRUE(a0 != b0 && a1 != b1 && a2 != b2 && a3 != b3 && a4 != b4 && a5 != b5);
  EXPECT_TRUE(a6 != b6 && a7 != b7 && a8 != b8);
  const RouteTerms terms = FullChoice(1).terms;
  const RouteTerms none;
  const auto& [c0, c1, c2, c3, c4, c5, c6, c7] = terms;
  const auto& [d0, d1, d2, d3, d4, d5, d6, d7] = none;
  EXPECT_TRUE(c0 != d0 && c1 != d1 && c2 != d2 && c3 != d3 && c4 != d4 && c5 != d5);
  EXPECT_TRUE(c6 != d6 && c7 != d7);
}

TEST(DecisionCodecTest, EveryFieldOfADecisionComesBack) {
  const Decision decision = FullDecision();
  const absl::StatusOr<Decision> read = DecisionFromMessage(ThroughBytes(MessageOf(decision)));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->time, decision.time);
  EXPECT_EQ(read->booking, decision.booking);
  EXPECT_EQ(read->fingerprint, decision.fingerprint);
  EXPECT_EQ(read->policy, decision.policy);
  EXPECT_EQ(read->degraded, decision.degraded);
  EXPECT_TRUE(read->snapshot == decision.snapshot);
  EXPECT_TRUE(read->ranked == decision.ranked);
  EXPECT_EQ(read->replicas, decision.replicas);
}

TEST(DecisionCodecTest, WhatIsNotKnownStaysNotKnown) {
  Decision decision = FullDecision();
  decision.snapshot.prefix_hash.reset();
  decision.snapshot.deadline_seconds.reset();
  decision.snapshot.replicas[0].age_seconds.reset();
  decision.snapshot.replicas[0].kv_tokens_max.reset();
  decision.snapshot.replicas[0].own_tokens = {};
  // Known, and zero.
  decision.snapshot.replicas[1].age_seconds = 0;
  decision.snapshot.replicas[1].kv_tokens_max = 0;
  const absl::StatusOr<Decision> read = DecisionFromMessage(ThroughBytes(MessageOf(decision)));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->snapshot == decision.snapshot);
}

TEST(DecisionCodecTest, EveryEnumeratorComesBack) {
  for (const HolderState state :
       {HolderState::kExact, HolderState::kRecovering, HolderState::kDegraded, HolderState::kOut}) {
    for (const RouteReason reason :
         {RouteReason::kPrefix, RouteReason::kRendezvous, RouteReason::kLoad,
          RouteReason::kHolderOut, RouteReason::kSession}) {
      Decision decision = FullDecision();
      decision.snapshot.replicas[0].holder_state = state;
      decision.ranked[0].reason = reason;
      const absl::StatusOr<Decision> read = DecisionFromMessage(MessageOf(decision));
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(read->snapshot.replicas[0].holder_state, state);
      EXPECT_EQ(read->ranked[0].reason, reason);
    }
  }
}

TEST(DecisionCodecTest, OutcomesAndNamesComeBack) {
  const DecisionOutcome outcome = {
      .time = absl::FromUnixMillis(5),
      .booking = NumberedBooking(1),
      .phase = OutcomePhase::kFirstToken,
      .replica = 3,
      .elsewhere = true,
      .cached_tokens = 4,
      .computed_tokens = 5,
      .compute_seconds = 0.5,
      .decoded = {.output_tokens = 6, .served_tokens = 7, .preemptions = 8, .refusals = 9}};
  v1::DecisionOutcome message;
  ToMessage(outcome, &message);
  const absl::StatusOr<DecisionOutcome> read = OutcomeFromMessage(message);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, outcome);
  v1::ReplicaTable table;
  ToMessage(*NumberedNames(3), &table);
  const absl::StatusOr<ReplicaNames> names = NamesFromMessage(table);
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_EQ(*names, *NumberedNames(3));
}

TEST(DecisionCodecTest, EveryOptionComesBackAndOneThatIsNotSaidHasItsDefault) {
  DecisionRun run;
  run.started = absl::FromUnixMillis(7);
  run.policy = "product";
  run.share = 0.5;
  run.options = {.miss_weight = 2,
                 .short_match_tokens = 3,
                 .short_match_share = 4,
                 .queue_slack_prompts = 5,
                 .decode_weight = 6,
                 .trust = {.recovering = 7, .degraded = 8, .stale_share_most = 9},
                 .ramp_seconds = 10,
                 .session_seconds = 11};
  v1::DecisionRun message;
  ToMessage(run, &message);
  EXPECT_EQ(message.options().size(), 10u);
  absl::StatusOr<DecisionRun> read = RunFromMessage(message);
  ASSERT_TRUE(read.ok()) << read.status();
  v1::DecisionRun again;
  ToMessage(*read, &again);
  EXPECT_EQ(message.DebugString(), again.DebugString());
  for (const auto& [name, value] : message.options()) EXPECT_GE(value, 2) << name;

  message.mutable_options()->erase("miss_weight");
  read = RunFromMessage(message);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->options.miss_weight, PrefixCostOptions().miss_weight);
  // Which the policy's constructor would not take.
  (*message.mutable_options())["miss_weight"] = 0.5;
  EXPECT_THAT(RunFromMessage(message).status().message(), HasSubstr("miss_weight"));
  (*message.mutable_options())["miss_weight"] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(RunFromMessage(message).status().message(), HasSubstr("miss_weight"));
}

TEST(DecisionCodecTest, ValuesThatNoRouterWritesAreRefusedByName) {
  struct Change {
    const char* field;
    void (*make)(v1::Decision*);
  };
  const Change changes[] = {
      {"time", [](v1::Decision* d) { d->set_time_unix_ms(-1); }},
      {"booking", [](v1::Decision* d) { d->set_booking("short"); }},
      {"fingerprint", [](v1::Decision* d) { d->clear_fingerprint(); }},
      {"policy", [](v1::Decision* d) { d->set_policy(std::string(300, 'p')); }},
      {"replicas", [](v1::Decision* d) { d->mutable_snapshot()->clear_replicas(); }},
      {"own_tokens_per_second",
       [](v1::Decision* d) { d->mutable_snapshot()->add_own_tokens_per_second(1); }},
      {"own_tokens_per_second",
       [](v1::Decision* d) { d->mutable_snapshot()->set_own_tokens_per_second(0, -1); }},
      {"prompt_tokens",
       [](v1::Decision* d) { d->mutable_snapshot()->set_prompt_tokens(UINT64_MAX); }},
      {"deadline_seconds",
       [](v1::Decision* d) {
         d->mutable_snapshot()->set_deadline_seconds(std::numeric_limits<double>::quiet_NaN());
       }},
      {"holder_state",
       [](v1::Decision* d) {
         d->mutable_snapshot()->mutable_replicas(0)->set_holder_state(v1::HOLDER_STATE_UNSPECIFIED);
       }},
      {"stale_share",
       [](v1::Decision* d) { d->mutable_snapshot()->mutable_replicas(0)->set_stale_share(1.5); }},
      // By which queues would be divided.
      {"prefill_tokens_per_second",
       [](v1::Decision* d) {
         d->mutable_snapshot()->mutable_replicas(1)->set_prefill_tokens_per_second(0);
       }},
      {"own_tokens",
       [](v1::Decision* d) { d->mutable_snapshot()->mutable_replicas(0)->add_own_tokens(1); }},
      {"requests",
       [](v1::Decision* d) {
         d->mutable_snapshot()->mutable_replicas(0)->set_requests(UINT64_MAX);
       }},
      {"ranked", [](v1::Decision* d) { d->clear_ranked(); }},
      {"ranked", [](v1::Decision* d) { *d->add_ranked() = d->ranked(0); }},
      {"replica", [](v1::Decision* d) { d->mutable_ranked(0)->set_replica(2); }},
      {"reason",
       [](v1::Decision* d) { d->mutable_ranked(0)->set_reason(v1::ROUTE_REASON_UNSPECIFIED); }},
      {"score",
       [](v1::Decision* d) {
         d->mutable_ranked(0)->set_score(std::numeric_limits<double>::quiet_NaN());
       }},
  };
  for (const Change& change : changes) {
    v1::Decision message = MessageOf(FullDecision());
    change.make(&message);
    const absl::Status status = DecisionFromMessage(message).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << change.field;
    EXPECT_THAT(status.message(), HasSubstr(change.field));
  }
}

}  // namespace
}  // namespace cairn::router
