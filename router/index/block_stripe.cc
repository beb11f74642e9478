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

}  // namespace

size_t BlockStripe::Place(const BlockEntry& entry, size_t next,
                          std::vector<BlockEntry>* entries) const {
  const size_t place = std::max(next, HomeOf(OrderOf(entry.key)));
  if (place >= entries->size()) entries->resize(place + 1);
  (*entries)[place] = entry;
  return place + 1;
}

void BlockStripe::Refill(size_t homes, size_t places_behind) {
  CAIRN_CHECK(homes >= size_ && homes <= UINT32_MAX);
  std::vector<BlockEntry> entries(homes == 0 ? 0 : homes + places_behind);
  homes_ = static_cast<uint32_t>(homes);
  size_t next = 0;
  for (const BlockEntry& entry : entries_) {
    if (entry.taken()) next = Place(entry, next, &entries);
  }
  entries_ = std::move(entries);
}

void BlockStripe::Insert(const BlockEntry& entry) {
  CAIRN_CHECK(entry.taken());
  if ((size_ + 1) * size_t{64} > homes_ * kFull) {
    const size_t homes = Grown(homes_);
    Refill(homes, PlacesBehind(homes));
  }
  const Order order = OrderOf(entry.key);
  size_t place = HomeOf(order);
  while (place < entries_.size() && entries_[place].taken() &&
         OrderOf(entries_[place].key) <= order) {
    if (SameKey(entries_[place++].key, entry.key)) break;
  }
  size_t free = place;
  while (free < entries_.size() && entries_[free].taken()) ++free;
  // Rare: the last homes have more than was thought of.
  if (free == entries_.size()) {
    entries_.reserve(free + PlacesBehind(homes_));
    entries_.resize(free + PlacesBehind(homes_));
  }
  const auto at = entries_.begin() + static_cast<std::ptrdiff_t>(place);
  std::move_backward(at, entries_.begin() + static_cast<std::ptrdiff_t>(free),
                     entries_.begin() + static_cast<std::ptrdiff_t>(free) + 1);
  *at = entry;
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
  const auto first = entries_.begin() + static_cast<std::ptrdiff_t>(hole);
  std::move(first + 1, entries_.begin() + static_cast<std::ptrdiff_t>(end), first);
  entries_[end - 1] = BlockEntry();
  --size_;
  ShrinkIfEmpty();
}

void BlockStripe::ShrinkIfEmpty() {
  if (homes_ == 0 || size_ * size_t{64} > homes_ * kEmpty) return;
  const size_t homes = size_ == 0 ? 0 : std::max(kHomesMin, size_ * size_t{64} / kRefilled + 1);
  if (homes < homes_) Refill(homes, PlacesBehind(homes));
}

}  // namespace cairn::router
