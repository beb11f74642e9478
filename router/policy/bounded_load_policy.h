// BoundedLoadPolicy: consistent hashing with bounded loads (Mirrokni, Thorup, Zadimoghaddam, SODA
// 2018).
//
// The prompt's first blocks are hashed with each replica (rendezvous); the first in that order
// whose queue, with the prompt in it, stays within
//     kFactor * (tokens queued anywhere + the prompt's) / replicas,   kFactor = 1.25,
// takes it. Those over the bound follow, in the same order. Needs no index.
#pragma once

#include "router/policy/route_policy.h"

namespace cairn::router {

class BoundedLoadPolicy final : public RoutePolicy {
 public:
  absl::string_view name() const override { return "bounded_load"; }
  absl::string_view score_unit() const override { return "places in the hash order"; }
  std::vector<RankedChoice> Rank(const RouteSnapshot& snapshot) const override;

  static constexpr double kFactor = 1.25;
};

}  // namespace cairn::router
