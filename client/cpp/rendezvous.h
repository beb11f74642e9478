// Where a prompt belongs while no router says so.
//
// Rendezvous (common/identity/rendezvous.h), as routers do for prompts that nobody holds yet: new
// prompts go where a router would have sent them. Nothing breaks where a router chose otherwise: it
// is a miss. A pure function.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "client/cpp/route_types.h"
#include "common/base/bytes16.h"

namespace cairn {

// The replicas, best first. Without a full block they stay as they stand.
std::vector<RoutedReplica> OrderByRendezvous(absl::Span<const BlockKey> keys,
                                             std::vector<RoutedReplica> replicas);

}  // namespace cairn
