// The model on traces small enough to count by hand, and what must hold on one that is not:
// conversations that come back, with answers, all behind the same first block.

#include "tests/bench/routing/decode_model.h"

#include <gtest/gtest.h>

#include "router/policy/policy_registry.h"
#include "tests/bench/eviction/fake_trace.h"
#include "tests/bench/routing/replica_engine.h"

namespace cairn::bench {
namespace {

BlockTrace Read(std::vector<FakeTrace::Prompt> prompts) {
  FakeTrace reader(std::move(prompts));
  return *BlockTrace::Read(&reader, {});
}

DecodeFigures Simulate(const BlockTrace& trace, absl::string_view policy,
                       const DecodeOptions& options) {
  return SimulateDecode(trace, **router::MakeRoutePolicy(policy, {}), options);
}

// Forty-one conversations of six turns.
BlockTrace Conversations() {
  std::vector<FakeTrace::Prompt> prompts;
  for (uint64_t turn = 0; turn < 6; ++turn) {
    for (uint64_t conversation = 0; conversation < 41; ++conversation) {
      FakeTrace::Prompt prompt{.ids = {1},
                               .arrival_s = static_cast<double>(prompts.size()),
                               .output_tokens = 5 + conversation};
      for (uint64_t i = 0; i < 40 + 40 * turn; ++i) {
        prompt.ids.push_back(1000 * (conversation + 1) + i);
      }
      prompts.push_back(prompt);
    }
  }
  return Read(prompts);
}

constexpr DecodeOptions kFour{.nodes = 4, .capacity = 4000, .kv_tokens_max = 20'000, .seeds = 3};

TEST(DecodeModelTest, OneRequestOnOneReplicaIsCountedByHand) {
  const BlockTrace trace = Read({{.ids = {1, 2}, .output_tokens = 3}});
  const DecodeFigures figures =
      Simulate(trace, "prefix_cost", {.nodes = 1, .capacity = 10, .slow_share = 0, .seeds = 1});
  const double first_s = ReplicaEngine::kStepSeconds + 20 / ReplicaEngine::kPrefillTokensPerSecond;
  const double each_s = ReplicaEngine::kStepSeconds + ReplicaEngine::kSequenceSeconds +
                        (22 + 23) * ReplicaEngine::kKvTokenSeconds / 2;
  EXPECT_NEAR(figures.ttft_mean_s, first_s, 1e-12);
  EXPECT_NEAR(figures.ttft_p99_s, first_s, 1e-12);
  EXPECT_NEAR(figures.tpot_mean_s, each_s, 1e-12);
  EXPECT_NEAR(figures.goodput_per_second, 1 / (first_s + 2 * each_s), 1e-9);
  EXPECT_EQ(figures.completions, 1);
  EXPECT_EQ(figures.kv_tokens_peak, 23);
}

TEST(DecodeModelTest, OnlyWhatKeepsBothTimesIsGoodput) {
  const BlockTrace trace = Read({{.ids = {1, 2}, .output_tokens = 3}});
  DecodeOptions options{.nodes = 1, .capacity = 10, .slow_share = 0, .seeds = 1};
  options.slo_ttft_s = ReplicaEngine::kStepSeconds;  // Its prefill comes on top.
  EXPECT_EQ(Simulate(trace, "prefix_cost", options).goodput_per_second, 0);
  options.slo_ttft_s = 1;
  EXPECT_GT(Simulate(trace, "prefix_cost", options).goodput_per_second, 0);
  options.slo_tpot_s = ReplicaEngine::kStepSeconds;
  EXPECT_EQ(Simulate(trace, "prefix_cost", options).goodput_per_second, 0);
}

TEST(DecodeModelTest, TheClockGivesThePrefillItsLoad) {
  // 400 tokens in 10 s, 200 of them again: with speeds of 1 and 0.5, half busy.
  std::vector<uint64_t> ids;
  for (uint64_t id = 0; id < 20; ++id) ids.push_back(id + 1);
  const BlockTrace trace = Read({{.ids = ids, .arrival_s = 7}, {.ids = ids, .arrival_s = 17}});
  const double seconds = 200 / (1.5 * ReplicaEngine::kPrefillTokensPerSecond) / 0.5;
  EXPECT_NEAR(DecodeClock(trace, {.nodes = 2, .load = 0.5}) * 10, seconds, 1e-12);
}

TEST(DecodeModelTest, AllThatIsAskedIsAnsweredAndKvStaysWithinItsLimit) {
  const BlockTrace trace = Conversations();
  for (const absl::string_view policy : router::RoutePolicyNames()) {
    DecodeOptions options = kFour;
    options.kv_tokens_max = LongestKvTokens(trace) + 20;  // Hardly two at once.
    const DecodeFigures figures = Simulate(trace, policy, options);
    EXPECT_EQ(figures.completions, static_cast<double>(trace.requests().size())) << policy;
    EXPECT_LE(figures.kv_tokens_peak, static_cast<double>(options.kv_tokens_max)) << policy;
    EXPECT_GT(figures.preemptions, 0) << policy;
    EXPECT_GE(figures.ttft_p99_s, figures.ttft_p50_s) << policy;
  }
}

TEST(DecodeModelTest, WithoutWantOfKvNobodyIsPreempted) {
  EXPECT_EQ(Simulate(Conversations(), "prefix_cost", kFour).preemptions, 0);
}

TEST(DecodeModelTest, TheSameSeedsGiveTheSameFigures) {
  const BlockTrace trace = Conversations();
  const DecodeFigures once = Simulate(trace, "prefix_cost", kFour);
  const DecodeFigures again = Simulate(trace, "prefix_cost", kFour);
  EXPECT_EQ(once.ttft_mean_s, again.ttft_mean_s);
  EXPECT_EQ(once.tpot_p99_s, again.tpot_p99_s);
  EXPECT_EQ(once.hit, again.hit);
}

TEST(DecodeModelTest, AReplicaThatIsFasterGetsMore) {
  const BlockTrace trace = Conversations();
  EXPECT_NEAR(Simulate(trace, "round_robin", kFour).slow_request_share, 0.5, 0.01);
  EXPECT_LT(Simulate(trace, "prefix_cost", kFour).slow_request_share, 0.47);
}

TEST(DecodeModelTest, TheDefaultHitsMoreAndAnswersSoonerThanTurns) {
  const BlockTrace trace = Conversations();
  const DecodeFigures ours = Simulate(trace, "prefix_cost", kFour);
  const DecodeFigures turns = Simulate(trace, "round_robin", kFour);
  EXPECT_GT(ours.hit, turns.hit + 0.2);
  EXPECT_LT(ours.ttft_mean_s, turns.ttft_mean_s);
  EXPECT_GE(ours.goodput_per_second, turns.goodput_per_second * 0.99);
}

}  // namespace
}  // namespace cairn::bench
