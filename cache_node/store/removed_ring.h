// RemovedRing: the last blocks that left, so that a miss can say "evicted" and not "never seen".
//
// A bounded ring with a map beside it; the oldest memory is forgotten first. A key that is put
// again is forgotten at once. Not thread-safe: under the store's lock. All calls are O(1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "cache_node/store/removal.h"
#include "common/base/bytes16.h"

namespace cairn::node {

// A (namespace, tenant) pair as a small number, given out by the store.
using PartitionIndex = uint32_t;

class RemovedRing {
 public:
  // Upper bound of the memory that one entry takes, for the printed sum.
  static constexpr size_t kBytesPerEntry = 96;

  // `entries_max` is positive and below 2^32. Takes all of its memory at once.
  explicit RemovedRing(size_t entries_max);

  // What is remembered from now on left at `now`, which does not go back.
  void AdvanceTo(absl::Time now);
  // The latest reason of a key wins.
  void Remember(PartitionIndex partition, const BlockKey& key, RemovalReason reason);
  void Forget(PartitionIndex partition, const BlockKey& key);
  // kNone: not remembered.
  RemovalReason ReasonOf(PartitionIndex partition, const BlockKey& key) const;
  // How long ago, to the second, it left; nothing when it is not remembered.
  std::optional<absl::Duration> AgeOf(PartitionIndex partition, const BlockKey& key,
                                      absl::Time now) const;
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
    uint32_t place = 0;  // In the ring; a place that was overwritten does not erase a newer memory.
    uint32_t left_s = 0;  // Seconds after the first AdvanceTo.
  };

  uint32_t SecondsAt(absl::Time now) const;

  const size_t entries_max_;
  absl::Time start_ = absl::InfinitePast();  // The first that was said.
  absl::Time now_ = absl::InfinitePast();
  std::vector<Id> ring_;
  size_t next_ = 0;
  absl::flat_hash_map<Id, Memory> reasons_;
};

}  // namespace cairn::node
