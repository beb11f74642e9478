// RandomPolicy: any available replica, all alike.
#pragma once

#include "router/policy/route_policy.h"

namespace cairn::router {

class RandomPolicy final : public RoutePolicy {
 public:
  absl::string_view name() const override { return "random"; }
  absl::string_view score_unit() const override { return "none"; }
  std::vector<RankedChoice> Rank(const RouteSnapshot& snapshot) const override;
};

}  // namespace cairn::router
