// FeedSource: what FeedHub reads when a watcher needs a shard from the start, and its digests.
//
// Implemented by the store's index; called under the store's lock.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "cache_node/store/removal.h"
#include "cache_node/store/removed_ring.h"
#include "common/base/bytes16.h"

namespace cairn::node {

// Tiers in the order of cairn.v1.Tier: bit (Tier - 1) of a mask.
inline constexpr uint8_t kDeviceBit = 1;
inline constexpr uint8_t kHostBit = 2;
inline constexpr uint8_t kDiskBit = 4;
inline constexpr size_t kTierCount = 3;

// An absolute record: where a block is now.
struct FeedRecord {
  PartitionIndex partition = 0;
  BlockKey key;
  uint8_t tier_mask = 0;  // 0: gone, for `reason`.
  RemovalReason reason = RemovalReason::kNone;
};

// A shard's blocks by tier: their number, and the sum of XXH3-64(key) mod 2^64.
struct ShardSums {
  struct TierSum {
    uint64_t blocks = 0;
    uint64_t key_sum = 0;
    friend bool operator==(const TierSum&, const TierSum&) = default;
  };
  std::array<TierSum, kTierCount> tiers;
  friend bool operator==(const ShardSums&, const ShardSums&) = default;
};

class FeedSource {
 public:
  virtual ~FeedSource() = default;
  virtual uint32_t shard_count() const = 0;
  // All records of one shard, those of a partition side by side.
  virtual std::vector<FeedRecord> SnapshotShard(uint32_t shard) const = 0;
  virtual ShardSums SumsOf(uint32_t shard) const = 0;
};

}  // namespace cairn::node
