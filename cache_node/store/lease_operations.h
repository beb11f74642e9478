// Lease operations: what readers do with a lease that a lookup gave them. Functions over the state,
// under the store's lock (shared for the const one).
#pragma once

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cache_node/store/store_state.h"
#include "cache_node/store/store_types.h"

namespace cairn::node {

absl::StatusOr<LeaseStatus> GetLeaseStatus(const StoreState& state, absl::string_view tenant,
                                           const LeaseId& lease, absl::Time now);

absl::StatusOr<absl::Duration> RenewShare(StoreState* state, absl::string_view tenant,
                                          const LeaseId& lease, uint32_t reader, absl::Duration ttl,
                                          absl::Time now);

absl::StatusOr<LeaseStatus> EndShare(StoreState* state, absl::string_view tenant,
                                     const LeaseId& lease, uint32_t reader,
                                     absl::Span<const uint32_t> usable_blocks, absl::Time now);

// The entry that may be read: through the lease, or by key in the caller's or the public partition.
// Null when there is none; `*answer` then says why.
absl::StatusOr<BlockEntry*> FindReadable(const StoreState& state, absl::string_view tenant,
                                         const Fingerprint& fingerprint,
                                         const std::optional<LeaseId>& lease, const BlockKey& key,
                                         absl::Time now, BlockAnswer* answer);

// Blocks of one prompt of a lease that can be read, consecutive. INVALID_ARGUMENT for a prompt that
// the lookup had not.
struct LeasedRun {
  absl::InlinedVector<BlockEntry*, 16> entries;
  bool ends = false;  // The next one is not there, or cannot be read.
};
absl::StatusOr<LeasedRun> FindLeasedRun(const StoreState& state, absl::string_view tenant,
                                        const Fingerprint& fingerprint, const LeaseId& lease,
                                        uint32_t prompt, uint32_t first_block, size_t count_max,
                                        absl::Time now);

}  // namespace cairn::node
