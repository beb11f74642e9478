#include "router/index/block_holders.h"

#include <algorithm>
#include <array>
#include <bit>

#include "absl/hash/hash.h"
#include "common/base/check.h"

namespace cairn::router {
namespace {

// Keys ahead of the one that is looked at: whose tags, and whose entries are asked for.
constexpr size_t kHashesAhead = 16;
constexpr size_t kEntriesAhead = 8;
// Stripes in which a record that finds no room looks for what was forgotten.
constexpr size_t kStripesForRoom = 8;

// A tier that a later contract adds counts as the slowest known. REQUIRES: there is one.
size_t FastestTier(uint8_t tiers) {
  return std::min<size_t>(static_cast<size_t>(std::countr_zero(tiers)), kTierCount - 1);
}

}  // namespace

BlockHolders::BlockHolders(size_t holders, size_t slots_max, PartitionTable* partitions,
                           uint32_t epochs_max)
    : slots_max_(slots_max),
      epochs_max_(epochs_max),
      seed_(absl::HashOf(uint64_t{kStripes})),  // Another in each process.
      partitions_(partitions),
      holders_(holders),
      stripes_(kStripes, BlockStripe(seed_)) {
  static_assert(kStripes == size_t{1} << (64 - 54));
  CAIRN_CHECK(holders <= kHoldersMax && slots_max > 0 && partitions != nullptr);
  CAIRN_CHECK(epochs_max > kShardsMax && epochs_max <= HolderSlot::kEpochMax);
}

// Epochs of one holder are never used twice while a slot has them, so that slots stay void when its
// shards change.
uint32_t BlockHolders::NextEpoch(HolderIndex holder) {
  if (holders_[holder].last_epoch == epochs_max_) Renumber(holder);
  return ++holders_[holder].last_epoch;
}

void BlockHolders::GrowTo(size_t holders) {
  CAIRN_CHECK(holders >= holders_.size() && holders <= kHoldersMax);
  holders_.resize(holders);
}

void BlockHolders::Begin(HolderIndex holder, uint32_t shards) {
  CAIRN_CHECK(holder < holders_.size() && shards > 0 && shards <= kShardsMax);
  Holder& renewed = holders_[holder];
  const uint32_t epoch = NextEpoch(holder);
  forgotten_count_ += renewed.blocks;
  renewed.blocks = 0;
  renewed.shards.assign(shards, Shard{epoch, 0});
  renewed.shard_mask = std::has_single_bit(shards) ? shards - 1 : 0;
}

void BlockHolders::ClearShard(HolderIndex holder, uint32_t shard) {
  CAIRN_CHECK(holder < holders_.size() && shard < holders_[holder].shards.size());
  Shard& cleared = holders_[holder].shards[shard];
  if (cleared.blocks == 0) return;  // No slot has its epoch.
  cleared.epoch = NextEpoch(holder);
  forgotten_count_ += cleared.blocks;
  holders_[holder].blocks -= cleared.blocks;
  cleared.blocks = 0;
}

// Frees what does not stand, and gives what stands the epochs 1, 2, ... by shard.
void BlockHolders::Renumber(HolderIndex holder) {
  for (BlockStripe& stripe : stripes_) SweepStripe(&stripe);
  std::vector<Shard>& shards = holders_[holder].shards;
  const auto renumber = [&](const BlockKey& key, HolderSlot* slot) {
    if (slot->holder() != holder) return;
    const size_t shard = key.bytes[0] % shards.size();
    *slot = HolderSlot(holder, slot->tiers(), static_cast<uint32_t>(shard) + 1);
  };
  for (BlockStripe& stripe : stripes_) {
    stripe.EraseIf([&](BlockEntry* entry) {
      renumber(entry->key, &entry->first);
      for (HolderSlot& slot : FurtherOf(entry)) renumber(entry->key, &slot);
      return false;
    });
  }
  for (size_t i = 0; i < shards.size(); ++i) shards[i].epoch = static_cast<uint32_t>(i) + 1;
  holders_[holder].last_epoch = static_cast<uint32_t>(shards.size());
}

absl::Span<HolderSlot> BlockHolders::FurtherOf(BlockEntry* entry) {
  if (entry->further == 0) return {};
  return {further_.At(entry->more, entry->further), entry->further};
}

absl::Span<const HolderSlot> BlockHolders::FurtherOf(const BlockEntry& entry) const {
  if (entry.further == 0) return {};
  return {further_.At(entry.more, entry.further), entry.further};
}

BlockHolders::Place BlockHolders::Locate(HolderIndex holder, uint64_t hash, const BlockKey& key) {
  BlockStripe& stripe = StripeOf(hash);
  for (BlockEntry* entry = stripe.Find(hash, key, nullptr); entry != nullptr;
       entry = stripe.Find(hash, key, entry)) {
    if (entry->first.holder() == holder) return {entry, &entry->first};
    for (HolderSlot& slot : FurtherOf(entry)) {
      if (slot.holder() == holder) return {entry, &slot};
    }
  }
  return {};
}

bool BlockHolders::Add(uint64_t hash, const BlockKey& key, PartitionIndex partition,
                       const HolderSlot& slot) {
  if (!HasRoom()) Sweep(kStripesForRoom);
  if (!HasRoom()) return false;
  BlockStripe& stripe = StripeOf(hash);
  BlockEntry* entry = stripe.Find(hash, key, nullptr);
  while (entry != nullptr && entry->partition != partition) entry = stripe.Find(hash, key, entry);
  if (entry == nullptr) {
    stripe.Insert({.key = key, .partition = partition, .first = slot});
    partitions_->Retain(partition);
  } else {
    const uint16_t further = entry->further++;
    entry->more =
        further == 0 ? further_.Allocate(1) : further_.Resize(entry->more, further, entry->further);
    FurtherOf(entry).back() = slot;
  }
  ++slot_count_;
  return true;
}

bool BlockHolders::TakeOut(size_t index, BlockEntry* entry) {
  if (entry->further == 0) return false;
  const absl::Span<HolderSlot> further = FurtherOf(entry);
  (index == 0 ? entry->first : further[index - 1]) = further.back();
  const uint16_t left = --entry->further;
  if (left == 0) {
    further_.Free(entry->more, 1);
  } else {
    entry->more = further_.Resize(entry->more, size_t{left} + 1, left);
  }
  return true;
}

void BlockHolders::Remove(uint64_t hash, const Place& place) {
  const size_t index = place.slot == &place.entry->first
                           ? 0
                           : static_cast<size_t>(place.slot - FurtherOf(place.entry).data()) + 1;
  --slot_count_;
  if (TakeOut(index, place.entry)) return;
  partitions_->Release(place.entry->partition);
  StripeOf(hash).Erase(place.entry);
}

std::optional<uint8_t> BlockHolders::Set(HolderIndex holder, PartitionIndex partition,
                                         const BlockKey& key, uint8_t tiers) {
  CAIRN_CHECK(holder < holders_.size() && !holders_[holder].shards.empty());
  Shard& shard = ShardOf(holder, key);
  const uint64_t hash = HashOf(key);
  const HolderSlot record(holder, tiers, shard.epoch);
  const Place place = Locate(holder, hash, key);
  uint8_t before = 0;
  if (place.slot != nullptr) {
    if (Stands(*place.slot, key)) {
      before = place.slot->tiers();
      --shard.blocks;
      --holders_[holder].blocks;
    } else {
      CAIRN_CHECK(forgotten_count_ > 0);
      --forgotten_count_;
    }
    if (tiers != 0 && place.entry->partition == partition) {
      *place.slot = record;
    } else {
      Remove(hash, place);
      if (tiers == 0) return before;
      const bool added = Add(hash, key, partition, record);
      CAIRN_CHECK(added);  // In the room of the one that was removed.
    }
  } else {
    if (tiers == 0) return 0;
    if (!Add(hash, key, partition, record)) return std::nullopt;
  }
  ++shard.blocks;
  ++holders_[holder].blocks;
  return before;
}

void BlockHolders::MatchBlock(uint32_t block, const BlockKey& key, const Sought& sought,
                              const ReadablePartitions& partitions, const std::vector<bool>& usable,
                              std::vector<PrefixMatch>* matches, bool* goes_on) const {
  const BlockStripe& stripe = StripeOf(sought.hash);
  const auto count = [&](const HolderSlot& slot) {
    PrefixMatch& match = (*matches)[slot.holder()];
    if (match.blocks != block || !usable[slot.holder()] || !Stands(slot, key)) return;
    ++match.blocks;
    ++match.fed[FastestTier(slot.tiers())];
    *goes_on = true;
  };
  for (const BlockEntry* entry = stripe.FindAt(sought.place, sought.hash, key); entry != nullptr;
       entry = stripe.Find(sought.hash, key, entry)) {
    if (!partitions.Has(entry->partition)) continue;
    count(entry->first);
    for (const HolderSlot& slot : FurtherOf(*entry)) count(slot);
  }
}

std::vector<PrefixMatch> BlockHolders::Match(absl::Span<const BlockKey> keys,
                                             const ReadablePartitions& partitions,
                                             const std::vector<bool>& usable,
                                             const SpeculativeBlocks* speculative) const {
  CAIRN_CHECK(usable.size() == holders_.size());
  std::vector<PrefixMatch> matches(holders_.size());
  // By the keys' indices mod kHashesAhead: first tags are asked for, then the entry they say.
  std::array<Sought, kHashesAhead> ahead;
  const auto hash_ahead = [&](size_t index) {
    if (index >= keys.size()) return;
    const uint64_t hash = HashOf(keys[index]);
    ahead[index % kHashesAhead].hash = hash;
    StripeOf(hash).PrefetchTags(hash);
  };
  const auto seek_ahead = [&](size_t index) {
    if (index >= keys.size()) return;
    Sought& sought = ahead[index % kHashesAhead];
    const BlockStripe& stripe = StripeOf(sought.hash);
    sought.place = stripe.Seek(sought.hash);
    stripe.PrefetchEntry(sought.place);
  };
  for (size_t i = 0; i < kHashesAhead; ++i) hash_ahead(i);
  for (size_t i = 0; i < kEntriesAhead; ++i) seek_ahead(i);
  for (uint32_t block = 0; block < keys.size(); ++block) {
    const BlockKey& key = keys[block];
    const Sought sought = ahead[block % kHashesAhead];
    hash_ahead(block + kHashesAhead);
    seek_ahead(block + kEntriesAhead);
    bool goes_on = false;
    MatchBlock(block, key, sought, partitions, usable, &matches, &goes_on);
    if (speculative != nullptr && !speculative->empty()) {
      speculative->Visit(key, [&](HolderIndex holder, PartitionIndex partition) {
        PrefixMatch& match = matches[holder];
        if (match.blocks != block || !usable[holder] || !partitions.Has(partition)) return;
        ++match.blocks;
        ++match.speculative;
        goes_on = true;
      });
    }
    if (!goes_on) break;
  }
  return matches;
}

bool BlockHolders::SweepEntry(BlockEntry* entry) {
  const auto freed = [this] {
    CAIRN_CHECK(forgotten_count_ > 0 && slot_count_ > 0);
    --forgotten_count_;
    --slot_count_;
  };
  for (size_t index = entry->further; index > 0; --index) {
    if (Stands(FurtherOf(entry)[index - 1], entry->key)) continue;
    TakeOut(index, entry);
    freed();
  }
  if (Stands(entry->first, entry->key)) return false;
  freed();
  if (TakeOut(0, entry)) return false;
  partitions_->Release(entry->partition);
  return true;
}

void BlockHolders::SweepStripe(BlockStripe* stripe) {
  if (forgotten_count_ == 0) return;
  stripe->EraseIf([this](BlockEntry* entry) { return SweepEntry(entry); });
}

void BlockHolders::Sweep(size_t stripes) {
  for (size_t i = 0; i < stripes && forgotten_count_ > 0; ++i) {
    SweepStripe(&stripes_[next_stripe_]);
    next_stripe_ = (next_stripe_ + 1) % kStripes;
  }
}

}  // namespace cairn::router
