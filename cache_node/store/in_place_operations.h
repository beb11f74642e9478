// In-place operations: shares of leases that readers of this host read where the blocks lie.
// Functions over the state, under the store's lock.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cache_node/store/in_place_types.h"
#include "cache_node/store/store_state.h"

namespace cairn::node {

// Where the blocks of the lease lie; with `hold` the share has no time to live any more. Stops
// before it has answered more than `digests_max` digests, but for the first block. As RenewShare
// for a lease or share that is over.
absl::StatusOr<InPlaceAnswer> ReadShareInPlace(StoreState* state, absl::string_view tenant,
                                               const LeaseId& lease, uint32_t reader,
                                               absl::Span<const BlockKey> keys, size_t digests_max,
                                               bool hold, absl::Time now);

// The reader is gone: its share counts as one that expired. Nothing, where it is over already.
void CloseShare(StoreState* state, absl::string_view tenant, const LeaseId& lease, uint32_t reader,
                absl::Time now);

}  // namespace cairn::node
