#include "cache_node/store/feed_tiers.h"

#include <algorithm>
#include <utility>

namespace cairn::node {
namespace {

constexpr size_t kDeviceTier = 0;  // Positions in ShardSums::tiers.
constexpr size_t kDiskTier = 2;
static_assert((1u << kDeviceTier) == kDeviceBit && (1u << kDiskTier) == kDiskBit);

bool Before(const FeedRecord& a, const FeedRecord& b) {
  return a.partition != b.partition ? a.partition < b.partition : a.key < b.key;
}

bool SameBlock(const FeedRecord& a, const FeedRecord& b) {
  return a.partition == b.partition && a.key == b.key;
}

// Adds what one more tier has of the shard to records that are in order.
std::vector<FeedRecord> WithTier(std::vector<FeedRecord> records, const DiskIndex& tier,
                                 uint32_t shard, uint8_t bit) {
  if (tier.SumOf(shard).blocks == 0) return records;
  std::vector<FeedRecord> added;
  for (const ParentId& block : tier.KeysOf(shard)) {
    added.push_back({.partition = block.partition, .key = block.key, .tier_mask = bit});
  }
  std::sort(added.begin(), added.end(), Before);
  std::vector<FeedRecord> all;
  all.reserve(records.size() + added.size());
  auto next = added.begin();
  for (FeedRecord& record : records) {
    while (next != added.end() && Before(*next, record)) all.push_back(*next++);
    if (next != added.end() && SameBlock(*next, record)) {
      record.tier_mask |= bit;
      ++next;
    }
    all.push_back(record);
  }
  all.insert(all.end(), next, added.end());
  return all;
}

}  // namespace

std::vector<FeedRecord> FeedTiers::SnapshotShard(uint32_t shard) const {
  std::vector<FeedRecord> records = host_->SnapshotShard(shard);
  if (disk_->shown()) records = WithTier(std::move(records), disk_->index, shard, kDiskBit);
  return WithTier(std::move(records), device_->index, shard, kDeviceBit);
}

ShardSums FeedTiers::SumsOf(uint32_t shard) const {
  ShardSums sums = host_->SumsOf(shard);
  if (disk_->shown()) sums.tiers[kDiskTier] = disk_->index.SumOf(shard);
  sums.tiers[kDeviceTier] = device_->index.SumOf(shard);
  return sums;
}

}  // namespace cairn::node
