// PrefixCostFixture: three idle replicas of 1,000 tokens a second, so that seconds are thousands of
// tokens, and the default policy with round constants.
#pragma once

#include <gmock/gmock.h>

#include <vector>

#include "router/policy/prefix_cost_policy.h"

namespace cairn::router {

class PrefixCostFixture : public ::testing::Test {
 protected:
  PrefixCostFixture() {
    snapshot_.prompt_tokens = 10'000;
    snapshot_.transfer.own = {1e12, 1e12, 2000};
    for (uint64_t i = 0; i < 3; ++i) {
      ReplicaView replica;
      replica.stable_hash = 1000 + i;
      replica.available = true;
      replica.prefill_tokens_per_second = 1000;
      snapshot_.replicas.push_back(replica);
    }
  }
  std::vector<size_t> Order() {
    std::vector<size_t> order;
    for (const RankedChoice& choice : policy_.Rank(snapshot_)) order.push_back(choice.replica);
    return order;
  }
  RankedChoice First() { return policy_.Rank(snapshot_).front(); }
  RankedChoice ChoiceOf(size_t replica) {
    for (const RankedChoice& choice : policy_.Rank(snapshot_)) {
      if (choice.replica == replica) return choice;
    }
    ADD_FAILURE() << "replica " << replica << " is not ranked";
    return {};
  }
  ReplicaView& At(size_t replica) { return snapshot_.replicas[replica]; }

  PrefixCostPolicy policy_{
      {.miss_weight = 10, .decode_weight = 0.01, .ramp_seconds = 20, .session_seconds = 2}};
  RouteSnapshot snapshot_;
};

}  // namespace cairn::router
