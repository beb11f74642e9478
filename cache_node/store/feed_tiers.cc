#include "cache_node/store/feed_tiers.h"

#include <algorithm>
#include <utility>

namespace cairn::node {
namespace {

constexpr size_t kDiskTier = 2;  // Position of the disk in ShardSums::tiers.
static_assert((1u << kDiskTier) == kDiskBit);

bool Before(const FeedRecord& a, const FeedRecord& b) {
  return a.partition != b.partition ? a.partition < b.partition : a.key < b.key;
}

bool SameBlock(const FeedRecord& a, const FeedRecord& b) {
  return a.partition == b.partition && a.key == b.key;
}

}  // namespace

std::vector<FeedRecord> FeedTiers::SnapshotShard(uint32_t shard) const {
  std::vector<FeedRecord> host = host_->SnapshotShard(shard);
  if (!disk_->shown() || disk_->index.SumOf(shard).blocks == 0) return host;
  std::vector<FeedRecord> disk;
  for (const ParentId& block : disk_->index.KeysOf(shard)) {
    disk.push_back({.partition = block.partition, .key = block.key, .tier_mask = kDiskBit});
  }
  std::sort(disk.begin(), disk.end(), Before);
  std::vector<FeedRecord> all;
  all.reserve(host.size() + disk.size());
  auto next = disk.begin();
  for (FeedRecord& record : host) {
    while (next != disk.end() && Before(*next, record)) all.push_back(*next++);
    if (next != disk.end() && SameBlock(*next, record)) {
      record.tier_mask |= kDiskBit;
      ++next;
    }
    all.push_back(record);
  }
  all.insert(all.end(), next, disk.end());
  return all;
}

ShardSums FeedTiers::SumsOf(uint32_t shard) const {
  ShardSums sums = host_->SumsOf(shard);
  if (disk_->shown()) sums.tiers[kDiskTier] = disk_->index.SumOf(shard);
  return sums;
}

}  // namespace cairn::node
