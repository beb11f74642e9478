// Whose blocks a question about prompts is about.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/v1/block.pb.h"
#include "common/rpc/caller_identity.h"

namespace cairn {

// The tenant that the prompts' scopes name, `public` aside; where they name none, the one that the
// call acts for. INVALID_ARGUMENT when they name two; PERMISSION_DENIED as TenantFor.
absl::StatusOr<std::string> TenantOfPrompts(absl::Span<const v1::Prompt* const> prompts,
                                            const Caller& caller);

}  // namespace cairn
