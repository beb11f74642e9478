#include "router/decisions/choice_tally.h"

#include <algorithm>

#include "common/base/check.h"
#include "router/policy/ranking.h"

namespace cairn::router {

void ChoiceTally::Add(const Decision& decision, const RankedChoice& choice, double cost_seconds) {
  const RouteSnapshot& snapshot = decision.snapshot;
  CAIRN_CHECK(choice.replica < snapshot.replicas.size());
  const ReplicaView& replica = snapshot.replicas[choice.replica];
  const uint64_t hit = snapshot.prompt_tokens - MissingTokens(snapshot, replica);
  const uint64_t remote = std::min(replica.remote_tokens, snapshot.prompt_tokens - hit);
  ++decisions_;
  prompt_tokens_ += snapshot.prompt_tokens;
  hit_tokens_ += hit;
  remote_tokens_ += remote;
  // By the same rule for each policy, whatever it counts itself.
  const RouteTerms terms = TermsOf(snapshot, replica, QueuedPrefillSeconds(replica));
  queued_seconds_ += terms.queued_seconds;
  expected_ttft_seconds_ += terms.expected_ttft_seconds;
  cost_seconds_ += cost_seconds;
  for (const ReplicaId id : decision.replicas) computed_by_replica_.try_emplace(id, 0);
  computed_by_replica_[decision.replicas[choice.replica]] += snapshot.prompt_tokens - hit - remote;
}

double ChoiceTally::BusiestOverMean() const {
  uint64_t most = 0;
  for (const auto& [id, tokens] : computed_by_replica_) most = std::max(most, tokens);
  if (computed_tokens() == 0) return 0;
  return static_cast<double>(most) * static_cast<double>(computed_by_replica_.size()) /
         static_cast<double>(computed_tokens());
}

}  // namespace cairn::router
