// OpenDiskTier: the disk tier that a configuration describes, and what it takes in memory.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "cache_node/service/disk_config.h"
#include "cache_node/tiers/disk/disk_tier.h"

namespace cairn::node {

// REQUIRES: config.on(), and it was checked. FAILED_PRECONDITION when the directory cannot be used,
// as when another node has it.
absl::StatusOr<std::unique_ptr<DiskTier>> OpenDiskTier(const DiskConfig& config);

// What the tier and the threads that use it may come to hold, without the index of its blocks.
ByteSize DiskTierMemory(const DiskConfig& config);

}  // namespace cairn::node
