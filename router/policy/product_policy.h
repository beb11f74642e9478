// ProductPolicy: LMetric (arXiv 2603.15202): the least product of
//
//     tokens to prefill (queued and the prompt's missing ones)  x  (running requests + 1).
//
// No parameters: a busy replica must save a larger share of the work.
#pragma once

#include "router/policy/route_policy.h"

namespace cairn::router {

class ProductPolicy final : public RoutePolicy {
 public:
  absl::string_view name() const override { return "product"; }
  absl::string_view score_unit() const override { return "tokens x requests"; }
  std::vector<RankedChoice> Rank(const RouteSnapshot& snapshot) const override;
};

}  // namespace cairn::router
