#include "router/index/block_holders.h"

#include <algorithm>

#include "common/base/check.h"

namespace cairn::router {
namespace {

// A tier that a later contract adds counts as the slowest known.
size_t FastestTier(uint8_t tiers) {
  for (size_t tier = 0; tier + 1 < kTierCount; ++tier) {
    if ((tiers >> tier & 1) != 0) return tier;
  }
  return kTierCount - 1;
}

}  // namespace

BlockHolders::BlockHolders(size_t holders, size_t slots_max, PartitionTable* partitions)
    : slots_max_(slots_max), partitions_(partitions), holders_(holders), stripes_(kStripes) {
  CAIRN_CHECK(holders <= kHoldersMax && slots_max > 0 && partitions != nullptr);
}

const BlockHolders::Shard& BlockHolders::ShardOf(HolderIndex holder, const BlockKey& key) const {
  const std::vector<Shard>& shards = holders_[holder].shards;
  return shards[key.bytes[0] % shards.size()];
}

BlockHolders::Shard& BlockHolders::ShardOf(HolderIndex holder, const BlockKey& key) {
  std::vector<Shard>& shards = holders_[holder].shards;
  CAIRN_CHECK(!shards.empty());
  return shards[key.bytes[0] % shards.size()];
}

bool BlockHolders::Stands(const Slot& slot, const BlockKey& key) const {
  return slot.epoch == ShardOf(slot.holder, key).epoch;
}

// Epochs of one holder are never used twice, so that slots stay void when its shards change.
void BlockHolders::Renew(Holder* holder, Shard* shard) {
  shard->epoch = ++holder->last_epoch;
  CAIRN_CHECK(shard->epoch != 0);
  forgotten_count_ += shard->blocks;
  holder->blocks -= shard->blocks;
  shard->blocks = 0;
}

void BlockHolders::Begin(HolderIndex holder, uint32_t shards) {
  CAIRN_CHECK(holder < holders_.size() && shards > 0);
  Holder& renewed = holders_[holder];
  forgotten_count_ += renewed.blocks;
  renewed.blocks = 0;
  renewed.shards.assign(shards, Shard{});
  for (Shard& shard : renewed.shards) Renew(&renewed, &shard);
}

void BlockHolders::ClearShard(HolderIndex holder, uint32_t shard) {
  CAIRN_CHECK(holder < holders_.size() && shard < holders_[holder].shards.size());
  Renew(&holders_[holder], &holders_[holder].shards[shard]);
}

bool BlockHolders::Add(const BlockKey& key, const Slot& slot) {
  Stripe& stripe = stripes_[StripeOf(key)];
  if (!HasRoom()) SweepStripe(&stripe);
  if (!HasRoom()) return false;
  stripe[key].push_back(slot);
  partitions_->Retain(slot.partition);
  ++slot_count_;
  ++ShardOf(slot.holder, key).blocks;
  ++holders_[slot.holder].blocks;
  return true;
}

std::optional<uint8_t> BlockHolders::Set(HolderIndex holder, PartitionIndex partition,
                                         const BlockKey& key, uint8_t tiers) {
  CAIRN_CHECK(holder < holders_.size());
  Shard& shard = ShardOf(holder, key);
  const Slot record = {shard.epoch, partition, holder, tiers};
  Stripe& stripe = stripes_[StripeOf(key)];
  const auto entry = stripe.find(key);
  Slot* slot = nullptr;
  if (entry != stripe.end()) {
    for (Slot& candidate : entry->second) {
      if (candidate.holder == holder) slot = &candidate;
    }
  }
  if (slot == nullptr) {
    if (tiers != 0 && !Add(key, record)) return std::nullopt;
    return 0;
  }
  const uint8_t before = Stands(*slot, key) ? slot->tiers : 0;
  if (before == 0) {
    CAIRN_CHECK(forgotten_count_ > 0);
    --forgotten_count_;
  } else {
    --shard.blocks;
    --holders_[holder].blocks;
  }
  partitions_->Release(slot->partition);
  if (tiers == 0) {
    *slot = entry->second.back();
    entry->second.pop_back();
    --slot_count_;
    if (entry->second.empty()) stripe.erase(entry);
    return before;
  }
  partitions_->Retain(partition);
  *slot = record;
  ++shard.blocks;
  ++holders_[holder].blocks;
  return before;
}

std::vector<PrefixMatch> BlockHolders::Match(absl::Span<const BlockKey> keys,
                                             const ReadablePartitions& partitions,
                                             const std::vector<bool>& usable,
                                             const SpeculativeBlocks* speculative) const {
  CAIRN_CHECK(usable.size() == holders_.size());
  std::vector<PrefixMatch> matches(holders_.size());
  for (uint32_t block = 0; block < keys.size(); ++block) {
    const BlockKey& key = keys[block];
    bool goes_on = false;
    const auto match_at = [&](HolderIndex holder, PartitionIndex partition) -> PrefixMatch* {
      PrefixMatch& match = matches[holder];
      if (match.blocks != block || !usable[holder] || !partitions.Has(partition)) return nullptr;
      ++match.blocks;
      goes_on = true;
      return &match;
    };
    const Stripe& stripe = stripes_[StripeOf(key)];
    if (const auto entry = stripe.find(key); entry != stripe.end()) {
      for (const Slot& slot : entry->second) {
        if (!Stands(slot, key)) continue;
        PrefixMatch* match = match_at(slot.holder, slot.partition);
        if (match != nullptr) ++match->fed[FastestTier(slot.tiers)];
      }
    }
    if (speculative != nullptr)
      speculative->Visit(key, [&](HolderIndex holder, PartitionIndex partition) {
        PrefixMatch* match = match_at(holder, partition);
        if (match != nullptr) ++match->speculative;
      });
    if (!goes_on) break;
  }
  return matches;
}

void BlockHolders::SweepStripe(Stripe* stripe) {
  absl::erase_if(*stripe, [this](auto& entry) {
    Slots& slots = entry.second;
    const auto kept = std::partition(slots.begin(), slots.end(),
                                     [&](const Slot& slot) { return Stands(slot, entry.first); });
    const auto freed = static_cast<size_t>(slots.end() - kept);
    for (auto slot = kept; slot != slots.end(); ++slot) partitions_->Release(slot->partition);
    slots.erase(kept, slots.end());
    CAIRN_CHECK(freed <= forgotten_count_ && freed <= slot_count_);
    forgotten_count_ -= freed;
    slot_count_ -= freed;
    return slots.empty();
  });
}

void BlockHolders::Sweep(size_t stripes) {
  for (size_t i = 0; i < stripes && forgotten_count_ > 0; ++i) {
    SweepStripe(&stripes_[next_stripe_]);
    next_stripe_ = (next_stripe_ + 1) % kStripes;
  }
}

}  // namespace cairn::router
