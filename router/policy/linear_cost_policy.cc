#include "router/policy/linear_cost_policy.h"

#include <algorithm>

#include "router/policy/ranking.h"

namespace cairn::router {

std::vector<RankedChoice> LinearCostPolicy::Rank(const RouteSnapshot& snapshot) const {
  constexpr double kHostCredit = 0.75;
  constexpr double kDiskCredit = 0.25;
  std::vector<double> scores;
  for (const ReplicaView& replica : snapshot.replicas) {
    const double credit =
        static_cast<double>(replica.own_tokens[kDeviceTier] + replica.coming_tokens) +
        kHostCredit * static_cast<double>(replica.own_tokens[kHostTier]) +
        kDiskCredit * static_cast<double>(replica.own_tokens[kDiskTier]);
    const double prefill =
        static_cast<double>(replica.queued_prefill_tokens + snapshot.prompt_tokens) - credit;
    const double decodes =
        static_cast<double>(replica.running_kv_tokens -
                            std::min(replica.running_kv_tokens, replica.queued_prefill_tokens));
    scores.push_back((std::max(0.0, prefill) + decodes) /
                     static_cast<double>(std::max<uint64_t>(1, snapshot.block_tokens)));
  }
  return RankByScore(snapshot, scores);
}

}  // namespace cairn::router
