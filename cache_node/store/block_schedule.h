// BlockSchedule: blocks by the wall-clock time at which something is due for them.
//
// A block may be put again for the same time; it stays one. Of those due at one time the lower rank
// comes first; a block is erased and asked for with the rank that it was put with. Not thread-safe:
// under the store's lock. O(log n) a call.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>

#include "absl/container/btree_set.h"
#include "cache_node/store/block_families.h"

namespace cairn::node {

class BlockSchedule {
 public:
  // Upper bound of what one block takes here.
  static constexpr uint64_t kBytesPerBlock = 64;

  // Where a walk over all blocks is. Blocks may come and go meanwhile.
  class Cursor {
   private:
    friend class BlockSchedule;
    std::optional<std::tuple<int64_t, uint32_t, PartitionIndex, BlockKey>> last_;
  };

  // 0 is never, and nothing is kept for it.
  void Put(int64_t unix_ms, const ParentId& block, uint32_t rank = 0) {
    if (unix_ms != 0) blocks_.insert({unix_ms, rank, block.partition, block.key});
  }
  // Absent ones are fine.
  void Erase(int64_t unix_ms, const ParentId& block, uint32_t rank = 0) {
    if (unix_ms != 0) blocks_.erase({unix_ms, rank, block.partition, block.key});
  }
  // Takes out one that is due at `now_unix_ms`, the earliest first.
  std::optional<ParentId> TakeDue(int64_t now_unix_ms) {
    if (blocks_.empty() || std::get<0>(*blocks_.begin()) > now_unix_ms) return std::nullopt;
    const ParentId block = BlockOf(*blocks_.begin());
    blocks_.erase(blocks_.begin());
    return block;
  }
  bool Has(int64_t unix_ms, const ParentId& block, uint32_t rank = 0) const {
    return blocks_.contains({unix_ms, rank, block.partition, block.key});
  }
  // The next of a walk in the order in which they come due.
  std::optional<ParentId> Next(Cursor* cursor) const {
    const auto it =
        cursor->last_.has_value() ? blocks_.upper_bound(*cursor->last_) : blocks_.begin();
    if (it == blocks_.end()) return std::nullopt;
    cursor->last_ = *it;
    return BlockOf(*it);
  }

 private:
  using Due = std::tuple<int64_t, uint32_t, PartitionIndex, BlockKey>;

  static ParentId BlockOf(const Due& due) { return {std::get<2>(due), std::get<3>(due)}; }

  absl::btree_set<Due> blocks_;
};

}  // namespace cairn::node
