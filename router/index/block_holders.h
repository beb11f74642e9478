// BlockHolders: which holder has which block in which tiers, by (namespace, tenant), as fed.
//
// Soft state. A block is one entry of 32 bytes with its first holder; further holders take 6 to 8
// bytes each. Forgetting a shard or a whole holder is O(1): it takes a new epoch, and slots of
// older ones count as gone; Sweep frees their memory bit by bit. At most `slots_max` pairs of block
// and holder. Not thread-safe: under the core's lock.
//
// A key made under one tenant is nobody else's, so an entry has one (namespace, tenant); holders
// that say another get an entry of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/types/span.h"
#include "common/base/bytes16.h"
#include "router/ids.h"
#include "router/index/block_stripe.h"
#include "router/index/partition_table.h"
#include "router/index/prefix_match.h"
#include "router/index/slot_pool.h"
#include "router/index/speculative_blocks.h"

namespace cairn::router {

class BlockHolders {
 public:
  // Upper bound of the memory of one pair of block and holder, for a printed sum.
  static constexpr size_t kBytesPerSlot = 64;
  static constexpr size_t kStripes = 1024;
  // Of a holder: a key's shard is its first byte mod their number.
  static constexpr uint32_t kShardsMax = 256;

  // `partitions` outlives it. After `epochs_max` epochs of a holder its slots are numbered anew, in
  // one pass over everything: once in years with the default.
  BlockHolders(size_t holders, size_t slots_max, PartitionTable* partitions,
               uint32_t epochs_max = HolderSlot::kEpochMax);

  // Makes room for so many holders. REQUIRES: not fewer than now.
  void GrowTo(size_t holders);

  // All that is held of the holder is forgotten; a key's shard is key[0] mod `shards` from here.
  void Begin(HolderIndex holder, uint32_t shards);
  // REQUIRES: shard < the holder's shards.
  void ClearShard(HolderIndex holder, uint32_t shard);

  // Puts the block where the record says (0: gone) and returns where it was. Nothing, and nothing
  // done, when there is no room. REQUIRES: Begin was called for the holder.
  std::optional<uint8_t> Set(HolderIndex holder, PartitionIndex partition, const BlockKey& key,
                             uint8_t tiers);

  // A record of the key will be set soon: asks for its memory. Inlined by force, as the calls of a
  // function that is found to have no effect are left out.
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Expect(const BlockKey& key) const {
    const uint64_t hash = HashOf(key);
    const BlockStripe& stripe = StripeOf(hash);
    stripe.PrefetchEntry(stripe.Seek(hash));
  }

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
  // A key whose entry was asked for.
  struct Sought {
    uint64_t hash = 0;
    BlockStripe::Place place = BlockStripe::kNowhere;
  };
  struct Shard {
    uint32_t epoch = 0;
    uint64_t blocks = 0;
  };
  struct Holder {
    std::vector<Shard> shards;
    uint32_t last_epoch = 0;
    // The number of shards less one, where that is a mask; else 0.
    uint32_t shard_mask = 0;
    uint64_t blocks = 0;
  };
  // A holder's slot of a key; null where it has none.
  struct Place {
    BlockEntry* entry = nullptr;
    HolderSlot* slot = nullptr;
  };

  uint64_t HashOf(const BlockKey& key) const { return BlockStripe::HashOf(key, seed_); }
  const BlockStripe& StripeOf(uint64_t hash) const { return stripes_[hash >> 54]; }
  BlockStripe& StripeOf(uint64_t hash) { return stripes_[hash >> 54]; }
  const Shard& ShardOf(HolderIndex holder, const BlockKey& key) const {
    const Holder& of = holders_[holder];
    if (of.shard_mask != 0) return of.shards[key.bytes[0] & of.shard_mask];
    return of.shards[key.bytes[0] % static_cast<uint32_t>(of.shards.size())];
  }
  Shard& ShardOf(HolderIndex holder, const BlockKey& key) {
    return const_cast<Shard&>(std::as_const(*this).ShardOf(holder, key));
  }
  bool Stands(const HolderSlot& slot, const BlockKey& key) const {
    return slot.epoch() == ShardOf(slot.holder(), key).epoch;
  }
  uint32_t NextEpoch(HolderIndex holder);
  void Renumber(HolderIndex holder);
  absl::Span<HolderSlot> FurtherOf(BlockEntry* entry);
  absl::Span<const HolderSlot> FurtherOf(const BlockEntry& entry) const;
  Place Locate(HolderIndex holder, uint64_t hash, const BlockKey& key);
  // Adds a slot to the key's entry of the partition, unless there is no room.
  bool Add(uint64_t hash, const BlockKey& key, PartitionIndex partition, const HolderSlot& slot);
  void Remove(uint64_t hash, const Place& place);
  // Takes the slot at `index` (0: the first) out of the entry. False when it was the last.
  bool TakeOut(size_t index, BlockEntry* entry);
  // Frees the entry's slots that do not stand; true when none is left.
  bool SweepEntry(BlockEntry* entry);
  void SweepStripe(BlockStripe* stripe);
  void MatchBlock(uint32_t block, const BlockKey& key, const Sought& sought,
                  const ReadablePartitions& partitions, const std::vector<bool>& usable,
                  std::vector<PrefixMatch>* matches, bool* goes_on) const;

  const size_t slots_max_;
  const uint32_t epochs_max_;
  const uint64_t seed_;
  PartitionTable* const partitions_;
  std::vector<Holder> holders_;
  std::vector<BlockStripe> stripes_;
  SlotPool further_;
  size_t next_stripe_ = 0;
  size_t slot_count_ = 0;
  size_t forgotten_count_ = 0;  // Slots of an older epoch than their shard's.
};

}  // namespace cairn::router
