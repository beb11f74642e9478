// BlockStripe: a part of the index: entries by key, in one array without pointers.
//
// Entries stand in the order of their keys' hashes, each at its home or as little behind it as
// those before it allow, so that a larger or smaller array is filled in one pass. Between seven
// tenths and 85 % full while it grows; half empty it shrinks. A search goes over tags of one byte,
// eight at a time, so that it touches the one line of memory that has the entry: an entry stands
// three places behind its home in the mean, and often ten. Pointers and places hold until the next
// Insert, Erase or EraseIf. Not thread-safe.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/base/attributes.h"
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
  // In the array.
  using Place = uint32_t;
  static constexpr Place kNowhere = UINT32_MAX;

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

  // The first place from the key's home on whose entry may be the key's; kNowhere: it has none.
  Place Seek(uint64_t hash) const {
    return tags_.empty() ? kNowhere : SeekFrom(static_cast<Place>(HomeOf(OrderOf(hash))), hash);
  }
  // Ask memory for what Seek reads, and for the entry at a place. Inlined by force: taken for
  // functions without any effect, calls of them would be left out.
  ABSL_ATTRIBUTE_ALWAYS_INLINE void PrefetchTags(uint64_t hash) const {
    if (!tags_.empty()) __builtin_prefetch(&tags_[HomeOf(OrderOf(hash))]);
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE void PrefetchEntry(Place place) const {
    if (place != kNowhere) __builtin_prefetch(&entries_[place]);
  }

  // The first entry of the key, null when it has none. `place`: what Seek said.
  const BlockEntry* FindAt(Place place, uint64_t hash, const BlockKey& key) const {
    while (place != kNowhere && !SameKey(entries_[place].key, key)) {
      place = SeekFrom(place + 1, hash);
    }
    return place == kNowhere ? nullptr : &entries_[place];
  }
  // The next entry of the key after `last`, or the first one; null at the end.
  const BlockEntry* Find(uint64_t hash, const BlockKey& key, const BlockEntry* last) const {
    if (last == nullptr) return FindAt(Seek(hash), hash, key);
    const BlockEntry* const next = last + 1;
    const bool there = next != entries_.data() + entries_.size() && next->taken();
    return there && SameKey(next->key, key) ? next : nullptr;
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
      Clear(i);
      if (erased) {
        --size_;
        continue;
      }
      next = Append(entry, next);
    }
    ShrinkIfEmpty();
  }

  size_t size() const { return size_; }

 private:
  using Order = uint32_t;
  static constexpr size_t kTagsAtOnce = sizeof(uint64_t);

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
  // Of hash bits that neither the order nor the choice of a stripe uses. 0 stands for a free place.
  static uint8_t TagOf(uint64_t hash) { return static_cast<uint8_t>(hash | 0x80); }

  // The first place from `place` on with the hash's tag, unless a free one comes before it.
  Place SeekFrom(Place place, uint64_t hash) const {
    constexpr uint64_t kOnes = 0x0101010101010101;
    constexpr uint64_t kHighs = kOnes << 7;
    for (;; place += kTagsAtOnce) {
      uint64_t tags;
      std::memcpy(&tags, &tags_[place], sizeof(tags));
      const uint64_t free = ~tags & kHighs;
      // Above the first byte that is equal, others may seem so: FindAt compares whole keys.
      const uint64_t unlike = tags ^ kOnes * TagOf(hash);
      const uint64_t like = (unlike - kOnes) & ~unlike & kHighs;
      if (like != 0 && (free == 0 || std::countr_zero(like) < std::countr_zero(free))) {
        return place + static_cast<Place>(std::countr_zero(like) / 8);
      }
      if (free != 0) return kNowhere;
    }
  }

  void Clear(size_t place) {
    entries_[place] = BlockEntry();
    tags_[place] = 0;
  }
  // Puts the entry, the next in order, at its home or at `next`, whatever is later; returns the
  // place after it.
  size_t Append(const BlockEntry& entry, size_t next);
  void Resize(size_t places);
  void Refill(size_t homes);
  void ShrinkIfEmpty();

  uint64_t seed_ = 0;
  uint32_t homes_ = 0;
  uint32_t size_ = 0;
  // The homes, and some places behind the last one.
  std::vector<BlockEntry> entries_;
  // By place, TagOf the entry or 0; then as many 0 as are read at once.
  std::vector<uint8_t> tags_;
};

}  // namespace cairn::router
