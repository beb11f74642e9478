// RoundRobinPolicy: prompt n goes to replica n mod N of those that are available, the next ones
// follow in order. Looks at nothing else: what a balancer without a cache in mind does.
#pragma once

#include "router/policy/route_policy.h"

namespace cairn::router {

class RoundRobinPolicy final : public RoutePolicy {
 public:
  absl::string_view name() const override { return "round_robin"; }
  absl::string_view score_unit() const override { return "turns"; }
  std::vector<RankedChoice> Rank(const RouteSnapshot& snapshot) const override;
};

}  // namespace cairn::router
