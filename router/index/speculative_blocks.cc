#include "router/index/speculative_blocks.h"

#include <algorithm>

#include "common/base/check.h"

namespace cairn::router {

SpeculativeBlocks::SpeculativeBlocks(const SpeculationOptions& options, size_t holders,
                                     PartitionTable* partitions)
    : options_(options), partitions_(partitions), generations_(holders) {
  CAIRN_CHECK(partitions != nullptr);
}

void SpeculativeBlocks::Mark(const BookingId& booking, HolderIndex holder, PartitionIndex partition,
                             absl::Span<const BlockKey> keys, absl::Time now) {
  CAIRN_CHECK(holder < generations_.size());
  keys = keys.first(std::min(keys.size(), options_.marks_max - mark_count_));
  if (keys.empty()) return;
  const uint64_t number = next_number_++;
  const auto [place, is_new] = speculations_.try_emplace(booking);
  CAIRN_CHECK(is_new);
  place->second = {number, partition, {keys.begin(), keys.end()}, now + options_.ttl};
  partitions_->Retain(partition);
  for (const BlockKey& key : keys) {
    stands_[key].push_back({number, partition, generations_[holder], holder});
  }
  mark_count_ += keys.size();
  deadlines_.insert({place->second.expires, booking});
}

// A prompt may hold one key twice under external ids, so one booking may stand on it twice.
template <typename Condition>
void SpeculativeBlocks::EraseStands(const BlockKey& key, Condition condition) {
  const auto found = stands_.find(key);
  if (found == stands_.end()) return;
  auto& stands = found->second;
  const size_t before = stands.size();
  stands.erase(std::remove_if(stands.begin(), stands.end(), condition), stands.end());
  mark_count_ -= before - stands.size();
  if (stands.empty()) stands_.erase(found);
}

void SpeculativeBlocks::Fed(HolderIndex holder, const BlockKey& key) {
  if (stands_.empty()) return;
  EraseStands(key, [holder](const Stand& stand) { return stand.holder == holder; });
}

void SpeculativeBlocks::End(const BookingId& booking, bool written, absl::Time now) {
  const auto found = speculations_.find(booking);
  if (found == speculations_.end()) return;
  if (!written || options_.linger <= absl::ZeroDuration()) return Drop(booking);
  absl::Time& expires = found->second.expires;
  deadlines_.erase({expires, booking});
  expires = std::min(expires, now + options_.linger);
  deadlines_.insert({expires, booking});
}

void SpeculativeBlocks::Drop(const BookingId& booking) {
  const auto found = speculations_.find(booking);
  CAIRN_CHECK(found != speculations_.end());
  const Speculation ended = std::move(found->second);
  deadlines_.erase({ended.expires, booking});
  speculations_.erase(found);
  partitions_->Release(ended.partition);
  for (const BlockKey& key : ended.keys) {
    EraseStands(key, [&](const Stand& stand) { return stand.speculation == ended.number; });
  }
}

void SpeculativeBlocks::EndHolder(HolderIndex holder) {
  CAIRN_CHECK(holder < generations_.size());
  ++generations_[holder];
}

void SpeculativeBlocks::Expire(absl::Time now) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const BookingId booking = deadlines_.begin()->second;
    Drop(booking);
  }
}

void SpeculativeBlocks::Visit(const BlockKey& key,
                              absl::FunctionRef<void(HolderIndex, PartitionIndex)> visit) const {
  const auto found = stands_.find(key);
  if (found == stands_.end()) return;
  for (const Stand& stand : found->second) {
    if (stand.generation == generations_[stand.holder]) visit(stand.holder, stand.partition);
  }
}

}  // namespace cairn::router
