// The model on traces small enough to count by hand, and what is true of policies on one that is
// not: conversations that come back, all with the same first block.

#include "tests/bench/routing/routing_model.h"

#include <gtest/gtest.h>

#include "router/policy/policy_registry.h"
#include "tests/bench/eviction/fake_trace.h"

namespace cairn::bench {
namespace {

BlockTrace Read(std::vector<FakeTrace::Prompt> prompts) {
  FakeTrace reader(std::move(prompts));
  return *BlockTrace::Read(&reader, {});
}

RoutingFigures Simulate(const BlockTrace& trace, absl::string_view policy,
                        const RoutingOptions& options) {
  return SimulateRouting(trace, **router::MakeRoutePolicy(policy, {}), options);
}

TEST(RoutingModelTest, OneNodeIsCountedByHand) {
  // 60 tokens to compute in 10 s at 70 % load: 60 / 10 / 0.7 tokens a second.
  const BlockTrace trace = Read({{.ids = {1, 2}, .arrival_s = 0},
                                 {.ids = {1, 2, 3}, .arrival_s = 0},
                                 {.ids = {4, 5, 6}, .arrival_s = 10}});
  const double speed = NodeTokensPerSecond(trace, 1);
  EXPECT_NEAR(speed, 60 / 10.0 / 0.7, 1e-9);
  const RoutingFigures figures =
      Simulate(trace, "prefix_cost", {.nodes = 1, .capacity = 10, .seeds = 3});
  EXPECT_NEAR(figures.hit, 2.0 / 8, 1e-9);
  EXPECT_NEAR(figures.token_hit, 20.0 / 80, 1e-9);
  EXPECT_NEAR(figures.busiest_over_mean, 1, 1e-9);
  // 20 tokens, then 10 behind them, then 30 alone.
  EXPECT_NEAR(figures.mean_wait_s, (20 + 30 + 30) / speed / 3, 1e-3);
  EXPECT_NEAR(figures.p99_wait_s, 30 / speed, 1e-3);
}

TEST(RoutingModelTest, RoundRobinMissesWhatTheOtherNodeHas) {
  std::vector<FakeTrace::Prompt> prompts;
  for (int i = 0; i < 6; ++i) prompts.push_back({.ids = {1, 2}, .arrival_s = 100.0 * i});
  const BlockTrace trace = Read(prompts);
  const RoutingOptions options{.nodes = 2, .capacity = 10, .seeds = 1};
  EXPECT_NEAR(Simulate(trace, "round_robin", options).hit, 4.0 / 6, 1e-9);
  EXPECT_NEAR(Simulate(trace, "longest_match", options).hit, 5.0 / 6, 1e-9);
}

// Forty-one conversations of six turns, one request a second, behind one block that all share.
BlockTrace Conversations() {
  std::vector<FakeTrace::Prompt> prompts;
  for (uint64_t turn = 0; turn < 6; ++turn) {
    for (uint64_t conversation = 0; conversation < 41; ++conversation) {
      FakeTrace::Prompt prompt{.ids = {1}, .arrival_s = static_cast<double>(prompts.size())};
      for (uint64_t i = 0; i < 4 + 4 * turn; ++i)
        prompt.ids.push_back(100 * (conversation + 1) + i);
      prompts.push_back(prompt);
    }
  }
  return Read(prompts);
}

TEST(RoutingModelTest, TheDefaultFollowsPrefixesAndBalances) {
  const BlockTrace trace = Conversations();
  const RoutingOptions options{.nodes = 4, .capacity = 400, .seeds = 5};
  const RoutingFigures ours = Simulate(trace, "prefix_cost", options);
  const RoutingFigures turns = Simulate(trace, "round_robin", options);
  const RoutingFigures match = Simulate(trace, "longest_match", options);
  EXPECT_GT(ours.hit, turns.hit + 0.2);
  EXPECT_LT(ours.busiest_over_mean, 1.2);
  EXPECT_NEAR(match.busiest_over_mean, 4, 0.01) << "the shared block pins all to one node";
  EXPECT_LT(ours.p99_wait_s, turns.p99_wait_s);
}

TEST(RoutingModelTest, WhatALateViewLosesIsMadeGoodByWhatTheRouterSent) {
  // Turns follow each other faster than the feed tells.
  std::vector<FakeTrace::Prompt> prompts;
  for (uint64_t conversation = 0; conversation < 30; ++conversation) {
    for (uint64_t turn = 0; turn < 8; ++turn) {
      FakeTrace::Prompt prompt{
          .ids = {},
          .arrival_s = static_cast<double>(conversation) * 40 + static_cast<double>(turn) * 0.2};
      for (uint64_t i = 0; i < 4 + turn; ++i) prompt.ids.push_back(100 * (conversation + 1) + i);
      prompts.push_back(prompt);
    }
  }
  const BlockTrace trace = Read(prompts);
  const RoutingOptions exact{.nodes = 4, .capacity = 1000, .seeds = 3};
  RoutingOptions late = exact;
  late.stale_s = 5;
  RoutingOptions late_by_four = late;
  late_by_four.routers = 4;
  const double best = Simulate(trace, "prefix_cost", exact).hit;
  EXPECT_NEAR(Simulate(trace, "prefix_cost", late).hit, best, 0.01);
  EXPECT_LT(Simulate(trace, "longest_match", late_by_four).hit, best - 0.1)
      << "what other routers sent is not known in time";
}

}  // namespace
}  // namespace cairn::bench
