// DurableLedger: what the store must know to be durable before it says that something is gone.
//
// The small part of the disk tier that removals wait for. Called outside the store's lock, on the
// thread of the call that removes; may block on the disk. Thread-safe. On an error nothing can be
// said of what is durable, and the store has removed nothing: the caller of the store may repeat
// its call.
#pragma once

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cache_node/tiers/disk/disk_tier.h"

namespace cairn::node {

class DurableLedger {
 public:
  virtual ~DurableLedger() = default;

  virtual absl::Status PutFence(const DiskTier::Fence& fence) = 0;
  // Also places in a file that is not finished yet.
  virtual absl::Status MarkDead(absl::Span<const DiskPlace> places) = 0;
};

}  // namespace cairn::node
