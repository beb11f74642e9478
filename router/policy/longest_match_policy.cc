#include "router/policy/longest_match_policy.h"

#include "router/policy/ranking.h"

namespace cairn::router {

std::vector<RankedChoice> LongestMatchPolicy::Rank(const RouteSnapshot& snapshot) const {
  constexpr double kSecondsAToken = 1e9;  // No queue outweighs one.
  std::vector<double> scores;
  for (const ReplicaView& replica : snapshot.replicas) {
    scores.push_back(kSecondsAToken * static_cast<double>(MissingTokens(snapshot, replica)) +
                     QueuedPrefillSeconds(replica));
  }
  return RankByScore(snapshot, scores);
}

}  // namespace cairn::router
