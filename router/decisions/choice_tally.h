// ChoiceTally: what the first choices of one policy come to over many decisions.
//
// A value with an Add. All of it follows from the snapshots: what the router knew when it decided,
// not what became of it. Each choice is judged in the state that the recorded choices led to.
#pragma once

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "router/decisions/decision.h"

namespace cairn::router {

class ChoiceTally {
 public:
  // `cost_seconds`: of the choice, by the default policy, so that policies with other units can be
  // held beside each other.
  void Add(const Decision& decision, const RankedChoice& choice, double cost_seconds);

  uint64_t decisions() const { return decisions_; }
  uint64_t prompt_tokens() const { return prompt_tokens_; }
  // Of the prompts, that the chosen replica's own node had or was about to have; that came from
  // other nodes beside these; and the rest.
  uint64_t hit_tokens() const { return hit_tokens_; }
  uint64_t remote_tokens() const { return remote_tokens_; }
  uint64_t computed_tokens() const { return prompt_tokens_ - hit_tokens_ - remote_tokens_; }
  // Means over the decisions; 0 without one.
  double queued_seconds() const { return Mean(queued_seconds_); }
  double expected_ttft_seconds() const { return Mean(expected_ttft_seconds_); }
  double cost_seconds() const { return Mean(cost_seconds_); }
  // Of the replicas' computed tokens, over all that were there to be chosen; 0 where none was
  // computed.
  double BusiestOverMean() const;

 private:
  double Mean(double sum) const {
    return decisions_ == 0 ? 0 : sum / static_cast<double>(decisions_);
  }

  uint64_t decisions_ = 0;
  uint64_t prompt_tokens_ = 0;
  uint64_t hit_tokens_ = 0;
  uint64_t remote_tokens_ = 0;
  double queued_seconds_ = 0;
  double expected_ttft_seconds_ = 0;
  double cost_seconds_ = 0;
  absl::flat_hash_map<ReplicaId, uint64_t> computed_by_replica_;
};

}  // namespace cairn::router
