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
  CAIRN_CHECK(holder < generations_.size() && key_count_ <= options_.marks_max);
  keys = keys.first(std::min(keys.size(), options_.marks_max - key_count_));
  if (keys.empty()) return;
  const Number number = next_number_++;
  const bool is_new = by_booking_.emplace(booking, number).second;
  CAIRN_CHECK(is_new);
  partitions_->Retain(partition);
  for (const BlockKey& key : keys) {
    stands_[key].push_back({number, partition, generations_[holder], holder});
  }
  mark_count_ += keys.size();
  key_count_ += keys.size();
  Speculation& made = speculations_[number];
  made = {booking, partition, {keys.begin(), keys.end()}, keys.size(), now + options_.ttl};
  deadlines_.insert({made.expires, number});
}

// A prompt may hold one key twice under external ids, so one booking may stand on it twice.
template <typename Condition>
void SpeculativeBlocks::EraseStands(const BlockKey& key, Condition condition) {
  const auto found = stands_.find(key);
  if (found == stands_.end()) return;
  auto& stands = found->second;
  const auto erased = [&](const Stand& stand) {
    if (!condition(stand)) return false;
    --mark_count_;
    Speculation& speculation = speculations_.at(stand.speculation);
    CAIRN_CHECK(speculation.standing > 0);
    --speculation.standing;
    return true;
  };
  stands.erase(std::remove_if(stands.begin(), stands.end(), erased), stands.end());
  if (stands.empty()) stands_.erase(found);
}

void SpeculativeBlocks::Fed(HolderIndex holder, const BlockKey& key) {
  const auto found = stands_.find(key);
  if (found == stands_.end()) return;
  absl::InlinedVector<Number, 4> touched;
  for (const Stand& stand : found->second) {
    if (stand.holder == holder) touched.push_back(stand.speculation);
  }
  if (touched.empty()) return;
  EraseStands(key, [holder](const Stand& stand) { return stand.holder == holder; });
  for (const Number number : touched) {
    const auto speculation = speculations_.find(number);
    if (speculation != speculations_.end() && speculation->second.standing == 0) Drop(number);
  }
}

void SpeculativeBlocks::End(const BookingId& booking, bool written, absl::Time now) {
  const auto found = by_booking_.find(booking);
  if (found == by_booking_.end()) return;
  const Number number = found->second;
  if (!written || options_.linger <= absl::ZeroDuration()) return Drop(number);
  Speculation& speculation = speculations_.at(number);
  SetDeadline(number, std::min(speculation.expires, now + options_.linger), &speculation);
}

void SpeculativeBlocks::SetDeadline(Number number, absl::Time expires, Speculation* speculation) {
  deadlines_.erase({speculation->expires, number});
  speculation->expires = expires;
  deadlines_.insert({expires, number});
}

void SpeculativeBlocks::Drop(Number number) {
  const auto found = speculations_.find(number);
  CAIRN_CHECK(found != speculations_.end());
  if (found->second.standing > 0) {
    for (const BlockKey& key : found->second.keys) {
      EraseStands(key, [number](const Stand& stand) { return stand.speculation == number; });
    }
  }
  const Speculation& ended = found->second;
  CAIRN_CHECK(ended.standing == 0 && key_count_ >= ended.keys.size());
  key_count_ -= ended.keys.size();
  deadlines_.erase({ended.expires, number});
  by_booking_.erase(ended.booking);
  partitions_->Release(ended.partition);
  speculations_.erase(found);
}

void SpeculativeBlocks::EndHolder(HolderIndex holder) {
  CAIRN_CHECK(holder < generations_.size());
  ++generations_[holder];
}

void SpeculativeBlocks::Expire(absl::Time now) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    Drop(deadlines_.begin()->second);
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
