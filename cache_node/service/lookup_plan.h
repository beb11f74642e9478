// LookupPlan: a checked LookupRequest as the store's question, and the store's answer as a message.
//
// Knows no RPC and keeps nothing.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cache_node/store/explain_types.h"
#include "cache_node/store/store_types.h"
#include "cairn/v1/cache_node.pb.h"
#include "common/identity/block_hasher.h"
#include "common/identity/fingerprint.h"
#include "common/identity/namespace.h"
#include "common/rpc/caller_identity.h"

namespace cairn::node {

// One prompt, its region's tenants checked.
struct PromptPlan {
  PromptQuery query;
  std::vector<ExplainQuery::Region> regions;  // Of a prompt by regions, in a known namespace.
};

// `name_space` null: not known, and a prompt by regions has no keys. Errors as MakeLookupPlan's.
absl::StatusOr<PromptPlan> MakePromptPlan(const v1::Prompt& message, const Caller& caller,
                                          const std::string& tenant, const Namespace* name_space,
                                          const BlockHasher& hasher);

struct LookupPlan {
  std::string tenant;
  Fingerprint fingerprint;
  LookupQuery query;
  absl::Duration wait;  // Longest, for pending blocks.
};

// `tenant` is that of its prompts (TenantOfPrompts). INVALID_ARGUMENT naming the field: counts,
// bounds, wait, lease options, anything of a prompt. PERMISSION_DENIED: a region's tenant is not
// the caller's to read. `name_space` is that of the fingerprint, or null when it is not known: then
// a prompt by regions has no keys.
absl::StatusOr<LookupPlan> MakeLookupPlan(const v1::LookupRequest& request, const Caller& caller,
                                          const std::string& tenant, const Namespace* name_space,
                                          const BlockHasher& hasher);

// Whether the first block that some prompt misses is on its way.
bool IsPending(const LookupAnswer& answer);

void ToMessage(const LookupAnswer& answer, v1::LookupResponse* message);

}  // namespace cairn::node
