// Replays of decisions that are made by hand: what counts as the same, what a tally adds up, and
// what was reported held against what was predicted.
#include "router/decisions/decision_replay.h"

#include <gmock/gmock.h>

#include "tests/router/decisions/sample_decisions.h"

namespace cairn::router {
namespace {

using ::testing::HasSubstr;

const std::shared_ptr<const ReplicaNames> kNames = NumberedNames(4);

DecisionReplay MakeReplay(const DecisionReplay::Options& options = {}) {
  absl::StatusOr<DecisionReplay> replay = DecisionReplay::Make(options);
  EXPECT_TRUE(replay.ok()) << replay.status();
  return *std::move(replay);
}

TEST(DecisionReplayTest, ThePolicyThatDecidedAnswersTheSame) {
  DecisionReplay replay = MakeReplay({.differences_max = 5, .differences_in_any_bit = true});
  for (uint32_t number = 0; number < 500; ++number) {
    EXPECT_TRUE(replay.Add(NumberedDecision(number, kNames)));
  }
  const DecisionReplay::OfPolicy& own = replay.policies().at(0);
  EXPECT_EQ(own.same_choice, 500u);
  EXPECT_EQ(own.same_answer, 500u);
  EXPECT_TRUE(replay.differences().empty());
  EXPECT_EQ(own.tally.hit_tokens(), replay.recorded().hit_tokens());
}

TEST(DecisionReplayTest, OneBitOfOneScoreIsAnotherAnswerAndOneOtherFirstAnotherChoice) {
  DecisionReplay replay = MakeReplay({.differences_max = 1, .differences_in_any_bit = true});
  DecisionReplay choices = MakeReplay({.differences_max = 5});
  Decision decision = NumberedDecision(1, kNames);
  decision.ranked[3].score = std::nextafter(decision.ranked[3].score, 1e9);
  replay.Add(decision);
  choices.Add(decision);
  decision = NumberedDecision(2, kNames);
  std::swap(decision.ranked[0], decision.ranked[1]);
  replay.Add(decision);
  choices.Add(decision);
  const DecisionReplay::OfPolicy& own = replay.policies().at(0);
  EXPECT_EQ(own.tally.decisions(), 2u);
  EXPECT_EQ(own.same_answer, 0u);
  EXPECT_EQ(own.same_choice, 1u);
  ASSERT_EQ(replay.differences().size(), 1u) << "no more than were asked for";
  EXPECT_EQ(replay.differences()[0].decision.snapshot.sequence, 1u);
  ASSERT_EQ(choices.differences().size(), 1u);
  EXPECT_EQ(choices.differences()[0].decision.snapshot.sequence, 2u);
}

TEST(DecisionReplayTest, AnAnswerThatWasCutIsComparedAsFarAsItGoes) {
  DecisionReplay replay = MakeReplay();
  Decision decision = NumberedDecision(1, kNames);
  decision.ranked.resize(1);
  replay.Add(decision);
  EXPECT_EQ(replay.policies().at(0).same_answer, 1u);
}

TEST(DecisionReplayTest, OptionsThatDifferDecideDifferently) {
  DecisionReplay::Options options;
  options.policy_options.miss_weight = 1;
  DecisionReplay replay = MakeReplay(options);
  for (uint32_t number = 0; number < 500; ++number) replay.Add(NumberedDecision(number, kNames));
  EXPECT_LT(replay.policies().at(0).same_answer, 500u);
  EXPECT_LT(replay.policies().at(0).tally.queued_seconds(), replay.recorded().queued_seconds());
}

TEST(DecisionReplayTest, PoliciesAreHeldBesideEachOtherAndTheSameEachTime) {
  DecisionReplay::Options options;
  for (const absl::string_view name : RoutePolicyNames()) options.policies.emplace_back(name);
  DecisionReplay once = MakeReplay(options);
  DecisionReplay again = MakeReplay(options);
  for (DecisionReplay* replay : {&once, &again}) {
    for (uint32_t number = 0; number < 500; ++number) replay->Add(NumberedDecision(number, kNames));
  }
  ASSERT_EQ(once.policies().size(), RoutePolicyNames().size());
  uint64_t most_hits = 0;
  double least_queued = 1e9;
  for (size_t i = 0; i < once.policies().size(); ++i) {
    const DecisionReplay::OfPolicy& policy = once.policies()[i];
    EXPECT_EQ(policy.same_answer, again.policies()[i].same_answer);
    EXPECT_EQ(policy.same_choice, again.policies()[i].same_choice);
    EXPECT_EQ(policy.tally.hit_tokens(), again.policies()[i].tally.hit_tokens());
    EXPECT_EQ(policy.tally.queued_seconds(), again.policies()[i].tally.queued_seconds());
    EXPECT_EQ(policy.tally.cost_seconds(), again.policies()[i].tally.cost_seconds());
    EXPECT_GE(policy.tally.BusiestOverMean(), 1) << policy.policy;
    most_hits = std::max(most_hits, policy.tally.hit_tokens());
    least_queued = std::min(least_queued, policy.tally.queued_seconds());
  }
  // Each is best at what it looks at.
  for (const DecisionReplay::OfPolicy& policy : once.policies()) {
    if (policy.policy == "longest_match") {
      EXPECT_EQ(policy.tally.hit_tokens(), most_hits);
    } else if (policy.policy == "least_loaded") {
      EXPECT_EQ(policy.tally.queued_seconds(), least_queued);
    }
  }
}

TEST(DecisionReplayTest, ATallyIsWhatOneCountsByHand) {
  Decision decision = NumberedDecision(1, kNames);
  decision.snapshot.prompt_tokens = 1000;
  for (ReplicaView& view : decision.snapshot.replicas) {
    view.available = true;
    view.own_tokens = {};
    view.queued_prefill_tokens = 30'000;
  }
  decision.snapshot.replicas[2].own_tokens = {0, 300, 100};
  decision.snapshot.replicas[2].coming_tokens = 100;
  decision.snapshot.replicas[2].remote_tokens = 200;
  ChoiceTally tally;
  RankedChoice choice;
  choice.replica = 2;
  tally.Add(decision, choice, 4);
  choice.replica = 0;
  tally.Add(decision, choice, 6);
  EXPECT_EQ(tally.decisions(), 2u);
  EXPECT_EQ(tally.prompt_tokens(), 2000u);
  EXPECT_EQ(tally.hit_tokens(), 500u);
  EXPECT_EQ(tally.remote_tokens(), 200u);
  EXPECT_EQ(tally.computed_tokens(), 1300u);
  EXPECT_DOUBLE_EQ(tally.queued_seconds(), 2);
  EXPECT_DOUBLE_EQ(tally.cost_seconds(), 5);
  EXPECT_DOUBLE_EQ(tally.BusiestOverMean(), 1000.0 / (1300.0 / 4));
  EXPECT_EQ(ChoiceTally().BusiestOverMean(), 0);
  EXPECT_EQ(ChoiceTally().queued_seconds(), 0);
}

TEST(DecisionReplayTest, WhatWasReportedIsHeldAgainstWhatWasPredicted) {
  DecisionReplay replay = MakeReplay();
  for (uint32_t number = 0; number < 4; ++number) replay.Add(NumberedDecision(number, kNames));
  const Decision first = NumberedDecision(0, kNames);
  const ReplicaView& chosen = first.snapshot.replicas[first.ranked[0].replica];
  const ReplicaId chosen_id = first.replicas[first.ranked[0].replica];
  // Its first token, with figures, and its end, which repeats them.
  replay.Add({.booking = first.booking,
              .phase = OutcomePhase::kFirstToken,
              .replica = chosen_id,
              .cached_tokens = 100,
              .computed_tokens = 5});
  replay.Add({.booking = first.booking, .cached_tokens = 100, .computed_tokens = 5});
  replay.Add({.booking = NumberedBooking(1), .replica = 99, .cached_tokens = 7});
  replay.Add({.booking = NumberedBooking(2), .elsewhere = true, .cached_tokens = 7});
  replay.Add(DecisionOutcome{.booking = NumberedBooking(3)});  // Ended, and says no figures.
  replay.Add({.booking = NumberedBooking(1234), .cached_tokens = 7});
  const DecisionReplay::Outcomes& outcomes = replay.outcomes();
  EXPECT_EQ(outcomes.ended, 4u);
  EXPECT_EQ(outcomes.measured, 1u);
  EXPECT_EQ(outcomes.predicted_tokens, std::min(chosen.OwnTokens(), first.snapshot.prompt_tokens));
  EXPECT_EQ(outcomes.delivered_tokens, 100u);
  EXPECT_EQ(outcomes.moved, 2u);
  EXPECT_EQ(outcomes.unmatched, 1u);
}

TEST(DecisionReplayTest, APolicyThatThereIsNotIsSaid) {
  EXPECT_THAT(DecisionReplay::Make({.policies = {"best"}}).status().message(),
              HasSubstr("there are prefix_cost"));
  Decision decision = NumberedDecision(1, kNames);
  decision.policy = "of a later version";
  DecisionReplay own = MakeReplay();
  EXPECT_FALSE(own.Add(decision));
  EXPECT_EQ(own.recorded().decisions(), 0u);
  DecisionReplay other = MakeReplay({.policies = {"random"}});
  EXPECT_TRUE(other.Add(decision));
}

}  // namespace
}  // namespace cairn::router
