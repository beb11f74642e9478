// DiskWrites: the blocks that movers are writing into files, from their being taken to their
// report.
//
// At most one for each block. Not thread-safe: under the store's lock.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "cache_node/store/block_families.h"
#include "cache_node/store/disk_task.h"

namespace cairn::node {

struct DiskWrite {
  WriteTask task;
  PartitionIndex partition = 0;
  BlockEntry* entry = nullptr;    // A spill: pinned by the task until it is reported.
  std::optional<DiskPlace> from;  // A move between files.
  std::optional<DiskPlace> place;

  ParentId block() const { return {partition, task.block.key}; }
};

class DiskWrites {
 public:
  // Gives the task its number. The block must not be here.
  const WriteTask& Add(DiskWrite write);
  DiskWrite* Find(uint64_t id);
  const DiskWrite* FindBlock(const ParentId& block) const;
  void Erase(uint64_t id);

  // UINT64_MAX when nothing is being written.
  uint64_t OldestSequence() const;

  size_t size() const { return writes_.size(); }
  uint64_t spilling_bytes() const { return spilling_bytes_; }  // Of spills.
  const absl::flat_hash_map<uint64_t, DiskWrite>& all() const { return writes_; }

 private:
  absl::flat_hash_map<uint64_t, DiskWrite> writes_;
  absl::flat_hash_map<ParentId, uint64_t> by_block_;
  uint64_t last_id_ = 0;
  uint64_t spilling_bytes_ = 0;
};

}  // namespace cairn::node
