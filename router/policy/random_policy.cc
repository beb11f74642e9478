#include "router/policy/random_policy.h"

#include "router/policy/ranking.h"

namespace cairn::router {

std::vector<RankedChoice> RandomPolicy::Rank(const RouteSnapshot& snapshot) const {
  return RankByScore(snapshot, std::vector<double>(snapshot.replicas.size()));
}

}  // namespace cairn::router
