#include "router/policy/policy_registry.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "router/policy/bounded_load_policy.h"
#include "router/policy/least_loaded_policy.h"
#include "router/policy/linear_cost_policy.h"
#include "router/policy/longest_match_policy.h"
#include "router/policy/preble_policy.h"
#include "router/policy/product_policy.h"
#include "router/policy/random_policy.h"
#include "router/policy/round_robin_policy.h"

namespace cairn::router {
namespace {

struct Named {
  absl::string_view name;
  std::unique_ptr<RoutePolicy> (*make)(const PrefixCostOptions& options);
};

template <typename Policy>
std::unique_ptr<RoutePolicy> Make(const PrefixCostOptions&) {
  return std::make_unique<Policy>();
}

std::unique_ptr<RoutePolicy> MakePrefixCost(const PrefixCostOptions& options) {
  return std::make_unique<PrefixCostPolicy>(options);
}

constexpr Named kPolicies[] = {
    {kDefaultRoutePolicy, MakePrefixCost},
    {"bounded_load", Make<BoundedLoadPolicy>},
    {"least_loaded", Make<LeastLoadedPolicy>},
    {"linear_cost", Make<LinearCostPolicy>},
    {"longest_match", Make<LongestMatchPolicy>},
    {"preble", Make<PreblePolicy>},
    {"product", Make<ProductPolicy>},
    {"random", Make<RandomPolicy>},
    {"round_robin", Make<RoundRobinPolicy>},
};

absl::Status NoSuchPolicy(absl::string_view name) {
  return absl::InvalidArgumentError(absl::StrCat("no routing policy is called \"", name,
                                                 "\": there are ",
                                                 absl::StrJoin(RoutePolicyNames(), ", ")));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RoutePolicy>> MakeRoutePolicy(absl::string_view name,
                                                             const PrefixCostOptions& options) {
  for (const Named& policy : kPolicies) {
    if (policy.name == name) return policy.make(options);
  }
  return NoSuchPolicy(name);
}

std::vector<absl::string_view> RoutePolicyNames() {
  std::vector<absl::string_view> names;
  for (const Named& policy : kPolicies) names.push_back(policy.name);
  return names;
}

RoutePolicySet::RoutePolicySet(const PrefixCostOptions& options) {
  for (const Named& policy : kPolicies) policies_.push_back(policy.make(options));
}

absl::StatusOr<const RoutePolicy*> RoutePolicySet::Find(absl::string_view name) const {
  for (const std::unique_ptr<const RoutePolicy>& policy : policies_) {
    if (policy->name() == name) return policy.get();
  }
  return NoSuchPolicy(name);
}

}  // namespace cairn::router
