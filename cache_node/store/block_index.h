// BlockIndex: the entries that can be found, by partition and key, in the feed's shards.
//
// Owns the entries in it. Keeps each shard's count and digest of present blocks as they change. Not
// thread-safe: under the store's lock; const methods may run together.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cache_node/store/block_entry.h"
#include "cache_node/store/block_families.h"
#include "cache_node/store/feed_source.h"

namespace cairn::node {

class BlockIndex final : public FeedSource {
 public:
  // `shards` is 1 to 256: a shard is the key's first byte mod `shards`.
  explicit BlockIndex(uint32_t shards);

  BlockEntry* Find(PartitionIndex partition, const BlockKey& key) const;
  // The place must be free.
  BlockEntry* Insert(std::unique_ptr<BlockEntry> entry);
  std::unique_ptr<BlockEntry> Take(BlockEntry* entry);

  // The entry takes so many bytes of the index more, or less.
  void AddBytes(BlockEntry* entry, uint64_t bytes);
  void RemoveBytes(BlockEntry* entry, uint64_t bytes);

  // The entry became present, or is present and about to leave.
  void CountPresent(const BlockEntry& entry);
  void UncountPresent(const BlockEntry& entry);

  uint32_t ShardOf(const BlockKey& key) const { return key.bytes[0] % shard_count(); }
  uint64_t present() const { return present_; }
  uint64_t size() const { return size_; }
  // Of all entries in it.
  uint64_t index_bytes() const { return index_bytes_; }

  uint32_t shard_count() const override { return static_cast<uint32_t>(shards_.size()); }
  std::vector<FeedRecord> SnapshotShard(uint32_t shard) const override;
  ShardSums SumsOf(uint32_t shard) const override;

  // O(n).
  void ForEach(const std::function<void(const BlockEntry&)>& visit) const;

 private:
  struct Shard {
    absl::flat_hash_map<ParentId, std::unique_ptr<BlockEntry>> entries;
    ShardSums sums;
  };

  std::vector<Shard> shards_;
  uint64_t present_ = 0;
  uint64_t size_ = 0;
  uint64_t index_bytes_ = 0;
};

}  // namespace cairn::node
