// DiskScopes: the scopes whose blocks are on disk, each kept once, with a list of its blocks.
//
// Part of the DiskIndex, which links the lists through its nodes. A scope lives as long as a block
// or a spill names it. Not thread-safe: under the store's lock.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "cache_node/store/disk_files.h"
#include "cache_node/store/removed_ring.h"
#include "cache_node/tiers/disk/disk_types.h"
#include "common/base/bytes16.h"

namespace cairn::node {

using DiskScopeIndex = uint32_t;

struct DiskScopeRecord {
  PartitionIndex partition = 0;
  uint64_t block_bytes = 0;  // Payload of each of its blocks.
  // Shared with the tasks that write blocks of it, which may outlive its last block here.
  std::shared_ptr<const DiskScope> scope;
  DiskHandle first = 0;
  DiskHandle last = 0;
  uint64_t blocks = 0;
};

class DiskScopes {
 public:
  // With the strings of the scope, and its place in the order.
  static uint64_t BytesOf(const DiskScope& scope);

  // Made where needed; DropIfUnused takes back what got no block.
  DiskScopeIndex Of(PartitionIndex partition, uint64_t block_bytes, const DiskScope& scope);
  void DropIfUnused(DiskScopeIndex scope);
  const DiskScopeRecord& At(DiskScopeIndex scope) const { return records_[scope]; }
  DiskScopeRecord& At(DiskScopeIndex scope) { return records_[scope]; }

  // Null when no block of it is on disk.
  const DiskScopeRecord* Find(PartitionIndex partition, const BlockKey& scope_digest) const;
  // Some scope of the partition that has blocks; null when there is none.
  const DiskScopeRecord* AnyOf(PartitionIndex partition) const;

  void CountBlock(DiskScopeIndex scope);
  void UncountBlock(DiskScopeIndex scope);
  // Of all scopes of the partition.
  uint64_t BlocksOf(PartitionIndex partition) const;

  size_t size() const { return by_digest_.size(); }
  uint64_t bytes() const { return bytes_; }
  const absl::btree_map<std::pair<PartitionIndex, BlockKey>, DiskScopeIndex>& by_digest() const {
    return by_digest_;
  }

 private:
  std::vector<DiskScopeRecord> records_;
  std::vector<DiskScopeIndex> free_;
  absl::btree_map<std::pair<PartitionIndex, BlockKey>, DiskScopeIndex> by_digest_;
  absl::flat_hash_map<PartitionIndex, uint64_t> blocks_;  // Of those that have some.
  uint64_t bytes_ = 0;
};

}  // namespace cairn::node
