#include "router/policy/product_policy.h"

#include "router/policy/ranking.h"

namespace cairn::router {

std::vector<RankedChoice> ProductPolicy::Rank(const RouteSnapshot& snapshot) const {
  std::vector<double> scores;
  for (const ReplicaView& replica : snapshot.replicas) {
    const uint64_t tokens = replica.queued_prefill_tokens + MissingTokens(snapshot, replica);
    scores.push_back(static_cast<double>(tokens) * static_cast<double>(replica.requests + 1));
  }
  return RankByScore(snapshot, scores);
}

}  // namespace cairn::router
