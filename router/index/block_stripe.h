// BlockStripe: a part of the index: entries by key, in one array without pointers.
//
// Entries stand in the order of their keys' hashes, each at its home or as little behind it as
// those before it allow, so that a search for what is not there ends soon, and a larger or smaller
// array is filled in one pass. Between seven tenths and 85 % full while it grows; half empty it
// shrinks. Pointers and places hold until the next Insert, Erase or EraseIf. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/numeric/int128.h"
#include "common/base/bytes16.h"
#include "router/index/holder_slot.h"
#include "router/index/partition_table.h"
#include "router/index/slot_pool.h"

namespace cairn::router {

// A block as the holders have it that say it is of one partition: nearly always all of them.
struct alignas(32) BlockEntry {
  BlockKey key;
  PartitionIndex partition = 0;
  HolderSlot first;  // Without tiers: the entry is free.
  uint16_t further = 0;
  SlotPool::Handle more = 0;  // The further ones', if any.

  bool taken() const { return first.tiers() != 0; }
};
static_assert(sizeof(BlockEntry) == 32);

class BlockStripe {
 public:
  // Where a key stands among all: its two halves multiplied. Keys are digests, so this only has to
  // keep those apart that were made to meet, by somebody who does not know the seed.
  static uint64_t HashOf(const BlockKey& key, uint64_t seed) {
    uint64_t halves[2];
    std::memcpy(halves, key.bytes.data(), sizeof(halves));
    const absl::uint128 product = absl::uint128(halves[0] ^ seed ^ 0x9e3779b97f4a7c15) *
                                  (halves[1] ^ (seed << 32 | seed >> 32) ^ 0xe7037ed1a0b428db);
    return absl::Uint128Low64(product) ^ absl::Uint128High64(product);
  }

  explicit BlockStripe(uint64_t seed) : seed_(seed) {}

  // Asks the memory of the key's home for it.
  void Prefetch(uint64_t hash) const {
    if (entries_.empty()) return;
    const BlockEntry* const home = &entries_[HomeOf(OrderOf(hash))];
    __builtin_prefetch(home);
    __builtin_prefetch(home + 2);
  }

  // The next entry of the key after `last`, or the first one; null at the end.
  const BlockEntry* Find(uint64_t hash, const BlockKey& key, const BlockEntry* last) const {
    const BlockEntry* const end = entries_.data() + entries_.size();
    if (last != nullptr) {
      const BlockEntry* const next = last + 1;
      return next != end && next->taken() && SameKey(next->key, key) ? next : nullptr;
    }
    if (size_ == 0) return nullptr;
    const Order order = OrderOf(hash);
    const BlockEntry* entry = entries_.data() + HomeOf(order);
    for (; entry != end && entry->taken(); ++entry) {
      if (SameKey(entry->key, key)) return entry;
      if (OrderOf(entry->key) > order) return nullptr;
    }
    return nullptr;
  }
  BlockEntry* Find(uint64_t hash, const BlockKey& key, const BlockEntry* last) {
    return const_cast<BlockEntry*>(std::as_const(*this).Find(hash, key, last));
  }
  // Takes the entry in. REQUIRES: it is taken().
  void Insert(const BlockEntry& entry);
  void Erase(BlockEntry* entry);
  // Erases those for which the condition, called once for each and free to change its slots, holds.
  template <typename Condition>
  void EraseIf(Condition condition) {
    size_t next = 0;
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (!entries_[i].taken()) continue;
      const bool erased = condition(&entries_[i]);
      const BlockEntry entry = entries_[i];
      entries_[i] = BlockEntry();
      if (erased) {
        --size_;
        continue;
      }
      next = Place(entry, next, &entries_);
    }
    ShrinkIfEmpty();
  }

  size_t size() const { return size_; }

 private:
  using Order = uint32_t;

  // As ==, which calls memcmp.
  static bool SameKey(const BlockKey& a, const BlockKey& b) {
    uint64_t halves[4];
    std::memcpy(halves, a.bytes.data(), kKeyBytes);
    std::memcpy(halves + 2, b.bytes.data(), kKeyBytes);
    return ((halves[0] ^ halves[2]) | (halves[1] ^ halves[3])) == 0;
  }
  static Order OrderOf(uint64_t hash) { return static_cast<Order>(hash >> 16); }
  Order OrderOf(const BlockKey& key) const { return OrderOf(HashOf(key, seed_)); }
  size_t HomeOf(Order order) const { return uint64_t{order} * homes_ >> 32; }
  // Puts the entry at its home or at `next`, whatever is later; returns the place after it.
  size_t Place(const BlockEntry& entry, size_t next, std::vector<BlockEntry>* entries) const;
  void Refill(size_t homes, size_t places_behind);
  void ShrinkIfEmpty();

  uint64_t seed_ = 0;
  uint32_t homes_ = 0;
  uint32_t size_ = 0;
  // The homes, and some places behind the last one.
  std::vector<BlockEntry> entries_;
};

}  // namespace cairn::router
