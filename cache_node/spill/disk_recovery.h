// DiskRecovery: what was on disk before this process is found again.
//
// A mover, used once: Open before the node serves (a small read and a small write), then Recover
// while it serves. Borrows tier and store, which must outlive it.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cache_node/store/block_store.h"
#include "cache_node/tiers/disk/disk_tier.h"

namespace cairn::node {

class DiskRecovery {
 public:
  DiskRecovery(DiskTier* tier, BlockStore* store) : tier_(tier), store_(store) {}

  // Namespaces and fences. Until it succeeds nothing is spilled or found on disk, and what must be
  // durable is refused; it may be called again, also while the node serves.
  absl::Status Open();
  // Blocks. `wall` says which have expired; stops early when `go_on` answers false. On an error
  // what was found so far stays, and it may be called again.
  absl::Status Recover(absl::Time wall, const std::function<bool()>& go_on);

 private:
  DiskTier* const tier_;
  BlockStore* const store_;
};

}  // namespace cairn::node
