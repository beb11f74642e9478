// One simulated replica, step by step: times and tokens counted by hand.

#include "tests/bench/routing/replica_engine.h"

#include <gtest/gtest.h>

#include "tests/bench/eviction/fake_trace.h"

namespace cairn::bench {
namespace {

constexpr double kStep = ReplicaEngine::kStepSeconds;
constexpr double kToken = 1 / ReplicaEngine::kPrefillTokensPerSecond;
constexpr double kSequence = ReplicaEngine::kSequenceSeconds;
constexpr double kKv = ReplicaEngine::kKvTokenSeconds;

class ReplicaEngineTest : public ::testing::Test {
 protected:
  void Make(std::vector<FakeTrace::Prompt> prompts, EngineOptions options = {}) {
    FakeTrace reader(std::move(prompts));
    trace_ = *BlockTrace::Read(&reader, {});
    if (options.capacity == 0) options.capacity = 1000;
    engine_ = std::make_unique<ReplicaEngine>(&trace_, options);
  }
  // Steps until there is nothing to do; what happened, each with its time.
  std::vector<std::pair<double, EngineEvent>> RunDry() {
    std::vector<std::pair<double, EngineEvent>> all;
    while (engine_->step_ends_s().has_value()) {
      const double at_s = *engine_->step_ends_s();
      std::vector<EngineEvent> events;
      engine_->FinishStep(&events);
      for (const EngineEvent& event : events) all.emplace_back(at_s, event);
    }
    return all;
  }

  BlockTrace trace_;
  std::unique_ptr<ReplicaEngine> engine_;
};

TEST_F(ReplicaEngineTest, OneRequestIsPrefilledAndThenDecodedTokenByToken) {
  Make({{.ids = {1, 2}, .output_tokens = 3}});
  engine_->Submit(0, 5);
  const auto events = RunDry();
  ASSERT_EQ(events.size(), 2u);
  const double first_s = 5 + kStep + 20 * kToken;
  EXPECT_NEAR(events[0].first, first_s, 1e-12);
  EXPECT_FALSE(events[0].second.ended);
  EXPECT_EQ(events[0].second.computed_tokens, 20u);
  EXPECT_NEAR(events[0].second.compute_s, kStep + 20 * kToken, 1e-12);
  // 22 tokens of KV with the second token of the answer, 23 with the third.
  EXPECT_NEAR(events[1].first, first_s + 2 * kStep + 2 * kSequence + (22 + 23) * kKv, 1e-12);
  EXPECT_TRUE(events[1].second.ended);
  EXPECT_EQ(engine_->kv_tokens(), 0u);
  EXPECT_EQ(engine_->kv_tokens_peak(), 23u);
}

TEST_F(ReplicaEngineTest, AReplicaOfHalfTheSpeedTakesTwiceAsLong) {
  Make({{.ids = {1, 2}, .output_tokens = 3}}, {.speed = 0.5});
  engine_->Submit(0, 0);
  EXPECT_NEAR(*engine_->step_ends_s(), 2 * (kStep + 20 * kToken), 1e-12);
}

TEST_F(ReplicaEngineTest, WhatOnePrefilledTheNextOneHits) {
  Make({{.ids = {1, 2}}, {.ids = {1, 2, 3}}, {.ids = {1, 2, 3}}});
  engine_->Submit(0, 0);
  engine_->Submit(1, 0);
  engine_->Submit(2, 0);
  const auto events = RunDry();
  // The first is alone in its step; the second computes its third block; the third enters the same
  // step, before that block is there.
  ASSERT_EQ(events.size(), 6u);
  EXPECT_EQ(events[0].second.hit_blocks, 0u);
  EXPECT_EQ(events[2].second.hit_blocks, 2u);
  EXPECT_EQ(events[2].second.computed_tokens, 10u);
  EXPECT_EQ(events[4].second.hit_blocks, 2u);
  EXPECT_EQ(engine_->prefilled_tokens(), 40u);
}

TEST_F(ReplicaEngineTest, OfAPromptThatIsCachedWholeTheLastTokenIsComputed) {
  Make({{.ids = {1, 2}}, {.ids = {1, 2}}});
  engine_->Submit(0, 0);
  RunDry();
  engine_->Submit(1, 9);
  const auto events = RunDry();
  EXPECT_EQ(events[0].second.hit_blocks, 2u);
  EXPECT_EQ(events[0].second.computed_tokens, 1u);
  EXPECT_NEAR(events[0].first, 9 + kStep + kToken, 1e-12);
}

TEST_F(ReplicaEngineTest, ALongPromptComesInChunksAndOthersDecodeBesideIt) {
  std::vector<uint64_t> ids;
  for (uint64_t id = 100; id < 600; ++id) ids.push_back(id);  // 5,000 tokens: three chunks.
  Make({{.ids = {1}, .output_tokens = 4}, {.ids = ids}});
  engine_->Submit(0, 0);
  engine_->Submit(1, 0);
  const auto events = RunDry();
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].second.request, 0u);
  // The first one's second to fourth token came with the three chunks.
  const double decoded_s = 3 * kSequence + (12 + 13 + 14) * kKv;
  const double end_s = kStep + 10 * kToken + 3 * kStep + 5000 * kToken + decoded_s;
  EXPECT_NEAR(events[1].first, end_s, 1e-9);
  EXPECT_NEAR(events[2].first, end_s, 1e-9);
  EXPECT_TRUE(events[1].second.ended);
  EXPECT_EQ(events[2].second.computed_tokens, 5000u);
}

TEST_F(ReplicaEngineTest, WithoutRoomForKvTheQueueWaits) {
  Make({{.ids = {1, 2, 3, 4}, .output_tokens = 5}, {.ids = {5, 6, 7, 8}, .output_tokens = 5}},
       {.kv_tokens_max = 60});
  engine_->Submit(0, 0);
  engine_->Submit(1, 0);
  const auto events = RunDry();
  ASSERT_EQ(events.size(), 4u);
  EXPECT_TRUE(events[1].second.ended);
  EXPECT_EQ(events[1].second.request, 0u) << "the second one entered before the first one's end";
  EXPECT_EQ(engine_->kv_tokens_peak(), 45u);
  EXPECT_EQ(engine_->preemptions(), 0u);
}

// Both hold 83 tokens after the second step, and two more with each. After the tenth there are 99,
// so that the eleventh sends the newer one, nine tokens into its answer, away; it comes back when
// the other one has ended, and computes the nine.
TEST_F(ReplicaEngineTest, AtTheLimitTheNewestLeavesAndIsComputedOnceMore) {
  Make({{.ids = {1, 2, 3, 4}, .output_tokens = 30}, {.ids = {5, 6, 7, 8}, .output_tokens = 10}},
       {.kv_tokens_max = 100});
  engine_->Submit(0, 0);
  engine_->Submit(1, 0);
  const auto events = RunDry();
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(engine_->preemptions(), 1u);
  EXPECT_EQ(engine_->kv_tokens_peak(), 99u);
  EXPECT_EQ(engine_->prefilled_tokens(), 40u + 40 + 9);
  EXPECT_TRUE(events[2].second.ended);
  EXPECT_EQ(events[2].second.request, 0u);
  EXPECT_TRUE(events[3].second.ended);
  EXPECT_EQ(events[3].second.request, 1u);
  EXPECT_NEAR(events[3].first - events[2].first, kStep + 9 * kToken, 1e-12);
}

TEST_F(ReplicaEngineTest, WhoWasSentAwayIsTheNextToEnter) {
  Make({{.ids = {1, 2, 3, 4}, .output_tokens = 30},
        {.ids = {5, 6, 7, 8}, .output_tokens = 10},
        {.ids = {9, 10, 11, 12}, .output_tokens = 1}},
       {.kv_tokens_max = 100});
  for (uint32_t request = 0; request < 3; ++request) engine_->Submit(request, 0);
  const auto events = RunDry();
  ASSERT_EQ(events.size(), 6u);
  EXPECT_EQ(engine_->preemptions(), 1u);
  // The third would fit beside the first, but the second stands before it.
  EXPECT_EQ(events[2].second.request, 0u);
  EXPECT_EQ(events[3].second.request, 1u);
  EXPECT_EQ(events[4].second.request, 2u);
}

}  // namespace
}  // namespace cairn::bench
