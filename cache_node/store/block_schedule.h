// BlockSchedule: blocks by the wall-clock time at which something is due for them.
//
// A block may be put again for the same time; it stays one. Not thread-safe: under the store's
// lock. O(log n) a call.
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

  // 0 is never, and nothing is kept for it.
  void Put(int64_t unix_ms, const ParentId& block) {
    if (unix_ms != 0) blocks_.insert({unix_ms, block.partition, block.key});
  }
  // Absent ones are fine.
  void Erase(int64_t unix_ms, const ParentId& block) {
    if (unix_ms != 0) blocks_.erase({unix_ms, block.partition, block.key});
  }
  // Takes out one that is due at `now_unix_ms`, the earliest first.
  std::optional<ParentId> TakeDue(int64_t now_unix_ms) {
    if (blocks_.empty() || std::get<0>(*blocks_.begin()) > now_unix_ms) return std::nullopt;
    const ParentId block{std::get<1>(*blocks_.begin()), std::get<2>(*blocks_.begin())};
    blocks_.erase(blocks_.begin());
    return block;
  }
  bool Has(int64_t unix_ms, const ParentId& block) const {
    return blocks_.contains({unix_ms, block.partition, block.key});
  }

 private:
  absl::btree_set<std::tuple<int64_t, PartitionIndex, BlockKey>> blocks_;
};

}  // namespace cairn::node
