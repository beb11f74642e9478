// The routing policies by name: one line each in the .cc file.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "router/policy/prefix_cost_policy.h"
#include "router/policy/route_policy.h"

namespace cairn::router {

inline constexpr absl::string_view kDefaultRoutePolicy = "prefix_cost";

// INVALID_ARGUMENT that lists the names, for another one. `options` are the default policy's; the
// others have none.
absl::StatusOr<std::unique_ptr<RoutePolicy>> MakeRoutePolicy(absl::string_view name,
                                                             const PrefixCostOptions& options);

// The default first.
std::vector<absl::string_view> RoutePolicyNames();

// One of each, for requests that name theirs. Thread-safe: it does not change.
class RoutePolicySet {
 public:
  explicit RoutePolicySet(const PrefixCostOptions& options);

  // INVALID_ARGUMENT that lists the names, for another one. Lives as long as the set.
  absl::StatusOr<const RoutePolicy*> Find(absl::string_view name) const;

 private:
  std::vector<std::unique_ptr<const RoutePolicy>> policies_;
};

}  // namespace cairn::router
