// One Lookup: its request from prompts, and its answer, checked, from the node's.
#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/cpp/lookup_types.h"
#include "client/cpp/namespace_handle.h"
#include "client/cpp/prompt.h"

namespace cairn {

class NodeLink;

// See CacheNodeClient::Lookup.
absl::StatusOr<LookupAnswer> LookupPrompts(NodeLink* link, const NamespaceHandle& name_space,
                                           absl::Span<const Prompt> prompts,
                                           const LookupOptions& options);

}  // namespace cairn
