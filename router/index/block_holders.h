// BlockHolders: which holder has which block in which tiers, by (namespace, tenant), as fed.
//
// Soft state. A block is one entry whatever the number of its holders. Forgetting a shard or a
// whole holder is O(1): it takes a new epoch, and slots of older ones count as gone; Sweep frees
// their memory bit by bit. At most `slots_max` pairs of block and holder. Not thread-safe: under
// the core's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "common/base/bytes16.h"
#include "router/ids.h"
#include "router/index/partition_table.h"
#include "router/index/prefix_match.h"
#include "router/index/speculative_blocks.h"

namespace cairn::router {

class BlockHolders {
 public:
  // Upper bound of the memory of one pair of block and holder, for a printed sum.
  static constexpr size_t kBytesPerSlot = 100;
  static constexpr size_t kStripes = 1024;

  // `partitions` outlives it.
  BlockHolders(size_t holders, size_t slots_max, PartitionTable* partitions);

  // All that is held of the holder is forgotten; a key's shard is key[0] mod `shards` from here.
  void Begin(HolderIndex holder, uint32_t shards);
  // REQUIRES: shard < the holder's shards.
  void ClearShard(HolderIndex holder, uint32_t shard);

  // Puts the block where the record says (0: gone) and returns where it was. Nothing, and nothing
  // done, when there is no room. REQUIRES: Begin was called for the holder.
  std::optional<uint8_t> Set(HolderIndex holder, PartitionIndex partition, const BlockKey& key,
                             uint8_t tiers);

  // Consecutive blocks from the first, by holder: those of the partitions that the caller may
  // read, at holders with `usable[holder]`; `speculative`, if any, fills in for what is not fed
  // yet. As long as `usable`, which has an element for each holder.
  std::vector<PrefixMatch> Match(absl::Span<const BlockKey> keys,
                                 const ReadablePartitions& partitions,
                                 const std::vector<bool>& usable,
                                 const SpeculativeBlocks* speculative) const;

  // Frees what was forgotten in the next `stripes` of kStripes.
  void Sweep(size_t stripes);

  uint64_t BlocksOf(HolderIndex holder) const { return holders_[holder].blocks; }
  // Pairs of block and holder in memory, forgotten ones included.
  size_t slot_count() const { return slot_count_; }
  bool HasRoom() const { return slot_count_ < slots_max_; }

 private:
  using Epoch = uint32_t;
  struct Slot {
    Epoch epoch = 0;
    PartitionIndex partition = 0;
    HolderIndex holder = 0;
    uint8_t tiers = 0;
  };
  using Slots = absl::InlinedVector<Slot, 1>;
  using Stripe = absl::flat_hash_map<BlockKey, Slots>;
  struct Shard {
    Epoch epoch = 0;
    uint64_t blocks = 0;
  };
  struct Holder {
    std::vector<Shard> shards;
    Epoch last_epoch = 0;
    uint64_t blocks = 0;
  };

  static size_t StripeOf(const BlockKey& key) {
    return (size_t{key.bytes[1]} << 8 | key.bytes[2]) % kStripes;
  }
  const Shard& ShardOf(HolderIndex holder, const BlockKey& key) const;
  Shard& ShardOf(HolderIndex holder, const BlockKey& key);
  bool Stands(const Slot& slot, const BlockKey& key) const;
  void Renew(Holder* holder, Shard* shard);
  // Adds a slot to the entry of `key`, unless there is no room.
  bool Add(const BlockKey& key, const Slot& slot);
  void SweepStripe(Stripe* stripe);

  const size_t slots_max_;
  PartitionTable* const partitions_;
  std::vector<Holder> holders_;
  std::vector<Stripe> stripes_;
  size_t next_stripe_ = 0;
  size_t slot_count_ = 0;
  size_t forgotten_count_ = 0;  // Slots of an older epoch than their shard's.
};

}  // namespace cairn::router
