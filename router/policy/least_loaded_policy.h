// LeastLoadedPolicy: the shortest queue, in seconds of booked prefill; of equal ones that with
// fewer requests. Knows nothing of prefixes.
#pragma once

#include "router/policy/route_policy.h"

namespace cairn::router {

class LeastLoadedPolicy final : public RoutePolicy {
 public:
  absl::string_view name() const override { return "least_loaded"; }
  absl::string_view score_unit() const override { return "seconds"; }
  std::vector<RankedChoice> Rank(const RouteSnapshot& snapshot) const override;
};

}  // namespace cairn::router
