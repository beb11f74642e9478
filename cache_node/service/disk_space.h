// What is free where the disk tier is to be, beside what it may take: checked and said at start.
// Values; no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "cache_node/service/disk_config.h"
#include "cache_node/tiers/disk/disk_tier.h"

namespace cairn::node {

struct DiskSpace {
  uint64_t total_bytes = 0;
  uint64_t free_bytes = 0;
};

// Of the file system of a directory; nothing where it cannot be asked, as of a disk that is not
// there. Blocks on the disk.
std::optional<DiskSpace> DiskSpaceOf(const std::string& directory);

// A line for people: where the tier is, what it may take, holds, and what is free. It warns when
// the file system will be full before the tier makes room in itself, which costs hits and no more.
// INVALID_ARGUMENT when the file system is smaller than the tier may become: that is a mistake.
absl::StatusOr<std::string> DiskStartLine(const DiskConfig& config, const DiskTier::Stats& stats,
                                          const std::optional<DiskSpace>& space);

}  // namespace cairn::node
