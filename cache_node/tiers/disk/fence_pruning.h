// FencePruning: which fences a ledger may forget, and what must be known in their place.
//
// A pure function, shared by all ledgers. The mark of all zeros, which says where sequences begin,
// always stays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cache_node/tiers/disk/disk_tier.h"

namespace cairn::node {

struct FencePruning {
  std::vector<DiskTier::Fence> forgotten;
  uint64_t dead_up_to = 0;  // Of the ledger from now on, if it is not above that already.

  // As DiskTier::PruneFences says.
  static FencePruning Of(std::vector<DiskTier::Fence> fences, uint64_t below, size_t fences_max);
};

}  // namespace cairn::node
