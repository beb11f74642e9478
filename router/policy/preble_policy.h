// PreblePolicy: exploit or explore, as in Preble (ICLR 2025, algorithm 1).
//
// Where the longest match is more than half of the prompt (what is cached exceeds what is missing)
// the request goes to the least loaded of the replicas that have it, unless that one is loaded over
// kImbalance times the mean; else to the replica of least cost
//     L + P:  prefill that is queued, and the prompt's missing tokens, in seconds.
// The paper's third term, what eviction there will cost, needs each cache's contents by age, which
// routers do not know; its replication of hot prefixes is left to the imbalance rule.
#pragma once

#include "router/policy/route_policy.h"

namespace cairn::router {

class PreblePolicy final : public RoutePolicy {
 public:
  absl::string_view name() const override { return "preble"; }
  absl::string_view score_unit() const override { return "seconds"; }
  std::vector<RankedChoice> Rank(const RouteSnapshot& snapshot) const override;

  static constexpr double kImbalance = 2;
};

}  // namespace cairn::router
