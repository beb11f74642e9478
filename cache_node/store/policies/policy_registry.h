// The eviction policies that a node can be told to use, by name: one line each in the .cc file.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cache_node/store/eviction_policy.h"

namespace cairn::node {

inline constexpr absl::string_view kDefaultEvictionPolicy = "reuse";
inline constexpr absl::string_view kDefaultEvictionPolicyWithDisk = "lru";

// INVALID_ARGUMENT that lists the names, for another one.
absl::StatusOr<std::unique_ptr<EvictionPolicyFactory>> MakeEvictionPolicies(absl::string_view name);

// The default first.
std::vector<absl::string_view> EvictionPolicyNames();

}  // namespace cairn::node
