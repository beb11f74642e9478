// LinearCostPolicy: the sum that NVIDIA Dynamo's router minimises, in blocks (its documentation,
// "KV router: cost", with the default weights):
//
//     max(0, queued prefill + prompt - credit) + blocks that decode,
//     credit = device blocks + 0.75 * host blocks + 0.25 * disk blocks.
//
// What is about to be written counts as device blocks.
#pragma once

#include "router/policy/route_policy.h"

namespace cairn::router {

class LinearCostPolicy final : public RoutePolicy {
 public:
  absl::string_view name() const override { return "linear_cost"; }
  absl::string_view score_unit() const override { return "blocks"; }
  std::vector<RankedChoice> Rank(const RouteSnapshot& snapshot) const override;
};

}  // namespace cairn::router
