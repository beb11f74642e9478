// What a holder has of a prompt, and whose blocks count.
#pragma once

#include <cstdint>
#include <optional>

#include "router/ids.h"
#include "router/index/partition_table.h"

namespace cairn::router {

// Consecutive blocks from a prompt's first.
struct PrefixMatch {
  uint32_t blocks = 0;
  // Those that were fed, each in its fastest tier.
  ByTier<uint32_t> fed{};
  // Those that a booked request is about to write.
  uint32_t speculative = 0;

  friend bool operator==(const PrefixMatch&, const PrefixMatch&) = default;
};

// The caller's own tenant and public, as far as anything is known of them.
struct ReadablePartitions {
  std::optional<PartitionIndex> own;
  std::optional<PartitionIndex> shared;

  bool Has(PartitionIndex partition) const { return own == partition || shared == partition; }
};

}  // namespace cairn::router
