// LongestMatchPolicy: the most tokens of the prompt on its own node; of equal ones the shorter
// queue.
//
// For comparison only: without regard to load, one prompt that all share pins everything to one
// replica.
#pragma once

#include "router/policy/route_policy.h"

namespace cairn::router {

class LongestMatchPolicy final : public RoutePolicy {
 public:
  absl::string_view name() const override { return "longest_match"; }
  absl::string_view score_unit() const override { return "tokens missing x 1e9 + seconds"; }
  std::vector<RankedChoice> Rank(const RouteSnapshot& snapshot) const override;
};

}  // namespace cairn::router
