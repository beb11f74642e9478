// DiskIndex: which blocks are on disk and where, whether they are in host memory or not.
//
// Compact, as there may be millions: nodes of fixed size in chunks, named by 32-bit handles; found
// by partition and key through one small table for each shard of the feed; listed by file (so that
// a file that leaves takes its blocks with it, in steps) and by scope (so that a scope or a
// namespace is cleared in steps). For each block it counts the children on disk in its own
// partition; children whose parent is not here are counted apart until it comes.
//
// What it takes is counted (`bytes`, an upper bound) against the bound that it was made with; over
// it, Insert refuses. It says which blocks there are; whether one may be read, and what the feed is
// told, is the store's business. Not thread-safe: under the store's lock; const methods may run
// together.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "cache_node/store/block_families.h"
#include "cache_node/store/disk_files.h"
#include "cache_node/store/disk_scopes.h"
#include "cache_node/store/feed_source.h"
#include "cache_node/tiers/disk/disk_types.h"

namespace cairn::node {

struct DiskNode {
  BlockKey key;
  BlockKey parent;  // Where `has_parent`.
  uint64_t sequence = 0;
  int64_t expires_unix_ms = 0;  // 0: never.
  uint32_t writer = 0;          // The low half of Provenance::writer.
  uint32_t written_unix_s = 0;
  DiskScopeIndex scope = 0;
  DiskHandle scope_previous = 0;
  DiskHandle scope_next = 0;
  DiskFileIndex file = 0;
  uint32_t slot = 0;
  uint32_t depth = 0;
  uint32_t children = 0;  // On disk, in its own partition.
  uint8_t priority = 0;
  bool has_parent : 1 = false;
  bool parent_shared : 1 = false;  // The parent is the public tenant's: it counts no child.
  bool used : 1 = false;           // Since it was written.
  bool dying : 1 = false;          // Its death is being made durable.
  bool live : 1 = false;           // It is a block's: only such are found.
};

class DiskIndex {
 public:
  // Upper bound of what one block takes: its node, and its share of a table that has just grown.
  // Its place in its file's list, and what waits for parents, are counted apart.
  static constexpr uint64_t kBytesPerBlock = 104;
  static constexpr uint64_t kBytesPerWaitingParent = 64;
  // More, for a block that expires: its place in the store's schedule.
  static constexpr uint64_t kBytesPerExpiry = 64;

  DiskIndex(uint32_t shards, uint64_t bytes_max);
  ~DiskIndex();
  DiskIndex(const DiskIndex&) = delete;
  DiskIndex& operator=(const DiskIndex&) = delete;

  // Handles of blocks are below it; IsLive says which are.
  DiskHandle handle_end() const { return nodes_made_ + 1; }
  bool IsLive(DiskHandle handle) const { return At(handle).live; }

  // 0 when it is not on disk.
  DiskHandle Find(PartitionIndex partition, const BlockKey& key) const;
  const DiskNode& At(DiskHandle handle) const;
  PartitionIndex PartitionOf(DiskHandle handle) const {
    return scopes_.At(At(handle).scope).partition;
  }
  uint64_t PayloadBytesOf(DiskHandle handle) const {
    return scopes_.At(At(handle).scope).block_bytes;
  }
  // As it is written into a record, with the epoch that the caller knows.
  DiskBlock BlockOf(DiskHandle handle, uint64_t epoch) const;
  DiskPlace PlaceOf(DiskHandle handle) const;
  // The parent as the store's families know it; `shared` is the public tenant's partition of the
  // block's namespace.
  ParentId ParentOf(DiskHandle handle, PartitionIndex shared) const;

  // Whether one more block fits within the bound.
  bool HasRoom() const;
  // The block must not be there, and its place in the file free. 0 when the bound is reached.
  DiskHandle Insert(DiskScopeIndex scope, DiskFileIndex file, uint32_t slot,
                    const DiskBlock& block);
  // The same block at another place.
  void Move(DiskHandle handle, DiskFileIndex file, uint32_t slot, uint64_t sequence);
  // The block there is another of the same key: its end, priority and writer.
  void Describe(DiskHandle handle, const DiskBlock& block);
  void Remove(DiskHandle handle);

  void MarkUsed(DiskHandle handle);
  void MarkDying(DiskHandle handle, bool dying) { NodeAt(handle).dying = dying; }

  DiskScopes& scopes() { return scopes_; }
  const DiskScopes& scopes() const { return scopes_; }
  DiskFiles& files() { return files_; }
  const DiskFiles& files() const { return files_; }

  uint32_t shard_count() const { return static_cast<uint32_t>(shards_.size()); }
  uint32_t ShardOf(const BlockKey& key) const { return key.bytes[0] % shard_count(); }
  uint64_t size() const { return size_; }
  uint64_t payload_bytes() const { return files_.payload_bytes(); }
  uint64_t bytes() const;
  const ShardSums::TierSum& SumOf(uint32_t shard) const { return shards_[shard].sum; }
  // (partition, key) of all blocks of a shard, in no order.
  std::vector<ParentId> KeysOf(uint32_t shard) const;

  // O(n): whether counts and lists agree with the nodes.
  absl::Status Audit() const;

 private:
  static constexpr uint32_t kChunkNodes = 4096;

  struct Named {
    PartitionIndex partition = 0;
    const BlockKey* key = nullptr;
  };
  struct Hash {
    using is_transparent = void;
    const DiskIndex* index;
    size_t operator()(const Named& named) const;
    size_t operator()(DiskHandle handle) const;
  };
  struct Same {
    using is_transparent = void;
    const DiskIndex* index;
    bool operator()(DiskHandle a, DiskHandle b) const { return a == b; }
    bool operator()(DiskHandle a, const Named& b) const;
    bool operator()(const Named& a, DiskHandle b) const { return (*this)(b, a); }
  };
  using Table = absl::flat_hash_set<DiskHandle, Hash, Same>;
  struct Shard {
    Table table;
    ShardSums::TierSum sum;
  };

  DiskNode& NodeAt(DiskHandle handle);
  DiskHandle NewNode();
  void Link(DiskHandle handle);
  void Unlink(DiskHandle handle);
  void CountChild(PartitionIndex partition, const DiskNode& child, bool added);

  const uint64_t bytes_max_;
  DiskScopes scopes_;
  DiskFiles files_;
  std::vector<std::unique_ptr<DiskNode[]>> chunks_;
  uint32_t nodes_made_ = 0;
  DiskHandle free_ = 0;  // Linked by scope_next.
  std::vector<Shard> shards_;
  // Children of blocks that are not here.
  absl::flat_hash_map<ParentId, uint32_t> waiting_;
  uint64_t size_ = 0;
  uint64_t expiring_ = 0;
};

}  // namespace cairn::node
