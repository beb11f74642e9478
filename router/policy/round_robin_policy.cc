#include "router/policy/round_robin_policy.h"

#include "router/policy/ranking.h"

namespace cairn::router {

std::vector<RankedChoice> RoundRobinPolicy::Rank(const RouteSnapshot& snapshot) const {
  uint64_t available = 0;
  for (const ReplicaView& replica : snapshot.replicas) available += replica.available ? 1 : 0;
  std::vector<double> scores(snapshot.replicas.size());
  uint64_t place = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (!snapshot.replicas[i].available) continue;
    scores[i] =
        static_cast<double>((place + available - snapshot.sequence % available) % available);
    ++place;
  }
  return RankByScore(snapshot, scores);
}

}  // namespace cairn::router
