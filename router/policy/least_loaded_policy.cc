#include "router/policy/least_loaded_policy.h"

#include "router/policy/ranking.h"

namespace cairn::router {

std::vector<RankedChoice> LeastLoadedPolicy::Rank(const RouteSnapshot& snapshot) const {
  constexpr double kSecondsARequest = 1e-6;  // Only breaks ties.
  std::vector<double> scores;
  for (const ReplicaView& replica : snapshot.replicas) {
    scores.push_back(QueuedPrefillSeconds(replica) +
                     kSecondsARequest * static_cast<double>(replica.requests));
  }
  return RankByScore(snapshot, scores);
}

}  // namespace cairn::router
