#include "cache_node/store/policies/policy_registry.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cache_node/store/policies/lru_policy.h"
#include "cache_node/store/policies/reuse/reuse_policy.h"
#include "cache_node/store/policies/s3_fifo_policy.h"

namespace cairn::node {
namespace {

struct Named {
  absl::string_view name;
  std::unique_ptr<EvictionPolicyFactory> (*make)();
};

template <typename Factory>
std::unique_ptr<EvictionPolicyFactory> MakeFactory() {
  return std::make_unique<Factory>();
}

constexpr Named kPolicies[] = {
    {"lru", MakeFactory<LruPolicyFactory>},
    {"reuse", MakeFactory<ReusePolicyFactory>},
    {"s3_fifo", MakeFactory<S3FifoPolicyFactory>},
};

}  // namespace

absl::StatusOr<std::unique_ptr<EvictionPolicyFactory>> MakeEvictionPolicies(
    absl::string_view name) {
  for (const Named& policy : kPolicies) {
    if (policy.name == name) return policy.make();
  }
  return absl::InvalidArgumentError(absl::StrCat("no eviction policy is called \"", name,
                                                 "\": there are ",
                                                 absl::StrJoin(EvictionPolicyNames(), ", ")));
}

std::vector<absl::string_view> EvictionPolicyNames() {
  std::vector<absl::string_view> names = {kDefaultEvictionPolicy};
  for (const Named& policy : kPolicies) {
    if (policy.name != kDefaultEvictionPolicy) names.push_back(policy.name);
  }
  return names;
}

}  // namespace cairn::node
