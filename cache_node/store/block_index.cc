#include "cache_node/store/block_index.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/identity/segment_digest.h"

namespace cairn::node {
namespace {

constexpr size_t kHostTier = 1;  // Position of the host in ShardSums::tiers.
static_assert((1u << kHostTier) == kHostBit);

}  // namespace

BlockIndex::BlockIndex(uint32_t shards) : shards_(shards) {
  CAIRN_CHECK(shards >= 1 && shards <= 256);
}

BlockEntry* BlockIndex::Find(PartitionIndex partition, const BlockKey& key) const {
  const Shard& shard = shards_[ShardOf(key)];
  auto it = shard.entries.find(ParentId{partition, key});
  return it == shard.entries.end() ? nullptr : it->second.get();
}

BlockEntry* BlockIndex::Insert(std::unique_ptr<BlockEntry> entry) {
  CAIRN_CHECK(entry->life == BlockEntry::Life::kReserved ||
              entry->life == BlockEntry::Life::kLoading);
  Shard& shard = shards_[ShardOf(entry->key)];
  const ParentId id{entry->partition, entry->key};
  const auto [it, inserted] = shard.entries.emplace(id, std::move(entry));
  CAIRN_CHECK(inserted);
  ++size_;
  index_bytes_ += it->second->index_bytes;
  return it->second.get();
}

std::unique_ptr<BlockEntry> BlockIndex::Take(BlockEntry* entry) {
  Shard& shard = shards_[ShardOf(entry->key)];
  auto it = shard.entries.find(ParentId{entry->partition, entry->key});
  CAIRN_CHECK(it != shard.entries.end() && it->second.get() == entry);
  std::unique_ptr<BlockEntry> taken = std::move(it->second);
  shard.entries.erase(it);
  CAIRN_CHECK(size_ > 0 && index_bytes_ >= taken->index_bytes);
  --size_;
  index_bytes_ -= taken->index_bytes;
  return taken;
}

void BlockIndex::AddBytes(BlockEntry* entry, uint64_t bytes) {
  entry->index_bytes += bytes;
  index_bytes_ += bytes;
}

void BlockIndex::RemoveBytes(BlockEntry* entry, uint64_t bytes) {
  CAIRN_CHECK(entry->index_bytes >= bytes && index_bytes_ >= bytes);
  entry->index_bytes -= bytes;
  index_bytes_ -= bytes;
}

void BlockIndex::CountPresent(const BlockEntry& entry) {
  ShardSums::TierSum& sum = shards_[ShardOf(entry.key)].sums.tiers[kHostTier];
  ++sum.blocks;
  sum.key_sum += FeedKeyDigest(entry.key);
  ++present_;
}

void BlockIndex::UncountPresent(const BlockEntry& entry) {
  ShardSums::TierSum& sum = shards_[ShardOf(entry.key)].sums.tiers[kHostTier];
  CAIRN_CHECK(sum.blocks > 0 && present_ > 0);
  --sum.blocks;
  sum.key_sum -= FeedKeyDigest(entry.key);
  --present_;
}

std::vector<FeedRecord> BlockIndex::SnapshotShard(uint32_t shard) const {
  CAIRN_CHECK(shard < shards_.size());
  std::vector<FeedRecord> records;
  records.reserve(shards_[shard].sums.tiers[kHostTier].blocks);
  for (const auto& [id, entry] : shards_[shard].entries) {
    if (entry->life != BlockEntry::Life::kPresent) continue;
    records.push_back({.partition = id.partition, .key = id.key, .tier_mask = kHostBit});
  }
  std::sort(records.begin(), records.end(), [](const FeedRecord& a, const FeedRecord& b) {
    return a.partition != b.partition ? a.partition < b.partition : a.key < b.key;
  });
  return records;
}

ShardSums BlockIndex::SumsOf(uint32_t shard) const {
  CAIRN_CHECK(shard < shards_.size());
  return shards_[shard].sums;
}

void BlockIndex::ForEach(const std::function<void(const BlockEntry&)>& visit) const {
  for (const Shard& shard : shards_) {
    for (const auto& [id, entry] : shard.entries) visit(*entry);
  }
}

}  // namespace cairn::node
