// RemovedRing: the last blocks that left, so that a miss can say "evicted" and not "never seen".
//
// A bounded ring with a map beside it; the oldest memory is forgotten first. A key that is put again
// is forgotten at once. Not thread-safe: under the store's lock.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cache_node/store/removal.h"
#include "common/base/bytes16.h"

namespace cairn::node {

// A (namespace, tenant) pair as a small number, given out by the store.
using PartitionIndex = uint32_t;

class RemovedRing {
 public:
  // `entries_max` is positive; takes about 64 bytes for each.
  explicit RemovedRing(size_t entries_max);

  void Remember(PartitionIndex partition, const BlockKey& key, RemovalReason reason);
  void Forget(PartitionIndex partition, const BlockKey& key);
  // kNone: not remembered.
  RemovalReason ReasonOf(PartitionIndex partition, const BlockKey& key) const;
  size_t size() const { return reasons_.size(); }

 private:
  struct Id {
    PartitionIndex partition = 0;
    BlockKey key;
    friend bool operator==(const Id&, const Id&) = default;
    template <typename H>
    friend H AbslHashValue(H state, const Id& id) {
      return H::combine(std::move(state), id.partition, id.key);
    }
  };
  struct Memory {
    RemovalReason reason = RemovalReason::kNone;
    size_t place = 0;  // In the ring; a place that was overwritten does not erase a newer memory.
  };

  std::vector<Id> ring_;
  const size_t entries_max_;
  size_t next_ = 0;
  absl::flat_hash_map<Id, Memory> reasons_;
};

}  // namespace cairn::node
