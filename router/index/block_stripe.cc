#include "router/index/block_stripe.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace cairn::router {
namespace {

constexpr size_t kHomesMin = 4;
// Shares in 64ths: full enough to grow, and empty enough to shrink.
constexpr size_t kFull = 54;
constexpr size_t kEmpty = 24;
// How full it is after it shrank.
constexpr size_t kRefilled = 46;

size_t Grown(size_t homes) { return std::max(kHomesMin, homes + homes / 6 + 1); }
size_t PlacesBehind(size_t homes) { return 4 + std::min<size_t>(28, homes / 16); }
std::ptrdiff_t Offset(size_t place) { return static_cast<std::ptrdiff_t>(place); }

}  // namespace

void BlockStripe::Resize(size_t places) {
  CAIRN_CHECK(places < kNowhere);
  const size_t tags = places == 0 ? 0 : places + kTagsAtOnce;
  entries_.reserve(places);  // No more than that.
  tags_.reserve(tags);
  entries_.resize(places);
  tags_.resize(tags);
}

size_t BlockStripe::Append(const BlockEntry& entry, size_t next) {
  const uint64_t hash = HashOf(entry.key, seed_);
  const size_t place = std::max(next, HomeOf(OrderOf(hash)));
  if (place >= entries_.size()) Resize(place + 1);
  entries_[place] = entry;
  tags_[place] = TagOf(hash);
  return place + 1;
}

void BlockStripe::Refill(size_t homes) {
  CAIRN_CHECK(homes >= size_ && homes <= UINT32_MAX);
  const std::vector<BlockEntry> old = std::exchange(entries_, {});
  tags_ = std::vector<uint8_t>();  // Frees; {} would keep the memory.
  homes_ = static_cast<uint32_t>(homes);
  Resize(homes == 0 ? 0 : homes + PlacesBehind(homes));
  size_t next = 0;
  for (const BlockEntry& entry : old) {
    if (entry.taken()) next = Append(entry, next);
  }
}

void BlockStripe::Insert(const BlockEntry& entry) {
  CAIRN_CHECK(entry.taken());
  if ((size_ + 1) * size_t{64} > homes_ * kFull) {
    Refill(Grown(homes_));
  }
  const uint64_t hash = HashOf(entry.key, seed_);
  const Order order = OrderOf(hash);
  size_t place = HomeOf(order);
  while (place < entries_.size() && entries_[place].taken() &&
         OrderOf(entries_[place].key) <= order) {
    if (SameKey(entries_[place++].key, entry.key)) break;
  }
  size_t free = place;
  while (free < entries_.size() && entries_[free].taken()) ++free;
  // Rare: the last homes have more than was thought of.
  if (free == entries_.size()) Resize(free + PlacesBehind(homes_));
  std::move_backward(entries_.begin() + Offset(place), entries_.begin() + Offset(free),
                     entries_.begin() + Offset(free + 1));
  std::move_backward(tags_.begin() + Offset(place), tags_.begin() + Offset(free),
                     tags_.begin() + Offset(free + 1));
  entries_[place] = entry;
  tags_[place] = TagOf(hash);
  ++size_;
}

void BlockStripe::Erase(BlockEntry* entry) {
  auto hole = static_cast<size_t>(entry - entries_.data());
  CAIRN_CHECK(hole < entries_.size() && entry->taken());
  // Those behind that are not at home come one place closer.
  size_t end = hole + 1;
  while (end < entries_.size() && entries_[end].taken() &&
         HomeOf(OrderOf(entries_[end].key)) < end) {
    ++end;
  }
  std::move(entries_.begin() + Offset(hole + 1), entries_.begin() + Offset(end),
            entries_.begin() + Offset(hole));
  std::move(tags_.begin() + Offset(hole + 1), tags_.begin() + Offset(end),
            tags_.begin() + Offset(hole));
  Clear(end - 1);
  --size_;
  ShrinkIfEmpty();
}

void BlockStripe::ShrinkIfEmpty() {
  if (homes_ == 0 || size_ * size_t{64} > homes_ * kEmpty) return;
  const size_t homes = size_ == 0 ? 0 : std::max(kHomesMin, size_ * size_t{64} / kRefilled + 1);
  if (homes < homes_) Refill(homes);
}

}  // namespace cairn::router
