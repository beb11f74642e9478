#include "cache_node/service/held_lease.h"

#include <vector>

namespace cairn::node {

void HeldLease::Hold(const std::optional<LeaseId>& id) {
  const std::optional<LeaseId> before = std::exchange(id_, id);
  if (!before.has_value() || before == id) return;
  const absl::StatusOr<LeaseStatus> status = store_->GetLease(tenant_, *before);
  if (!status.ok()) return;  // It is over already.
  const std::vector<uint32_t> nothing(status->usable_blocks.size(), 0);
  for (uint32_t reader = 0; reader < readers_; ++reader) {
    if (!store_->EndLease(tenant_, *before, reader, nothing).ok()) return;
  }
}

}  // namespace cairn::node
