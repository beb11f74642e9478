#include "router/index/speculative_blocks.h"

#include <algorithm>
#include <iterator>

#include "common/base/check.h"

namespace cairn::router {
namespace {

// Keys ahead of the one that is looked at whose memory is asked for.
constexpr size_t kAhead = 8;

}  // namespace

SpeculativeBlocks::SpeculativeBlocks(const SpeculationOptions& options, size_t holders,
                                     PartitionTable* partitions)
    : options_(options), partitions_(partitions), generations_(holders) {
  CAIRN_CHECK(partitions != nullptr);
}

void SpeculativeBlocks::GrowTo(size_t holders) {
  CAIRN_CHECK(holders >= generations_.size());
  generations_.resize(holders);
}

void SpeculativeBlocks::Mark(const BookingId& booking, HolderIndex holder, PartitionIndex partition,
                             absl::Span<const BlockKey> keys, absl::Time now) {
  CAIRN_CHECK(holder < generations_.size() && key_count_ <= options_.marks_max);
  keys = keys.first(std::min(keys.size(), options_.marks_max - key_count_));
  if (keys.empty()) return;
  if (free_numbers_.empty()) {
    free_numbers_.push_back(static_cast<Number>(speculations_.size()));
    speculations_.emplace_back();
  }
  const Number number = free_numbers_.back();
  free_numbers_.pop_back();
  const bool is_new = by_booking_.emplace(booking, number).second;
  CAIRN_CHECK(is_new);
  partitions_->Retain(partition);
  stands_.reserve(stands_.size() + keys.size());
  size_t standing = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (i + kAhead < keys.size()) stands_.prefetch(keys[i + kAhead]);
    Stands& stands = stands_[keys[i]];
    if (!stands.empty() && stands.back() == number) continue;  // The prompt has it twice.
    stands.push_back(number);
    ++standing;
  }
  mark_count_ += standing;
  key_count_ += keys.size();
  Speculation& made = speculations_[number];
  made.booking = booking;
  made.partition = partition;
  made.generation = generations_[holder];
  made.holder = holder;
  made.keys.assign(keys.begin(), keys.end());
  made.standing = standing;
  made.expires = now + options_.ttl;
  deadlines_.insert({made.expires, number});
}

template <typename Condition>
void SpeculativeBlocks::EraseStands(const BlockKey& key, Condition condition) {
  const auto found = stands_.find(key);
  if (found == stands_.end()) return;
  Stands& stands = found->second;
  const auto erased = [&](Number number) {
    if (!condition(number)) return false;
    --mark_count_;
    Speculation& speculation = speculations_[number];
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
  const auto is_of_holder = [&](Number number) { return speculations_[number].holder == holder; };
  absl::InlinedVector<Number, 4> touched;
  std::copy_if(found->second.begin(), found->second.end(), std::back_inserter(touched),
               is_of_holder);
  if (touched.empty()) return;
  EraseStands(key, is_of_holder);
  for (const Number number : touched) {
    const Speculation& speculation = speculations_[number];
    if (speculation.standing == 0 && !speculation.keys.empty()) Drop(number);
  }
}

void SpeculativeBlocks::End(const BookingId& booking, bool written, absl::Time now) {
  const auto found = by_booking_.find(booking);
  if (found == by_booking_.end()) return;
  const Number number = found->second;
  if (!written || options_.linger <= absl::ZeroDuration()) return Drop(number);
  SetDeadline(number, std::min(speculations_[number].expires, now + options_.linger));
}

void SpeculativeBlocks::SetDeadline(Number number, absl::Time expires) {
  deadlines_.erase({speculations_[number].expires, number});
  speculations_[number].expires = expires;
  deadlines_.insert({expires, number});
}

void SpeculativeBlocks::Drop(Number number) {
  CAIRN_CHECK(number < speculations_.size() && !speculations_[number].keys.empty());
  const std::vector<BlockKey> keys = std::move(speculations_[number].keys);
  Speculation& ended = speculations_[number];
  for (size_t i = 0; i < keys.size() && ended.standing > 0; ++i) {
    if (i + kAhead < keys.size()) stands_.prefetch(keys[i + kAhead]);
    EraseStands(keys[i], [number](Number other) { return other == number; });
  }
  CAIRN_CHECK(ended.standing == 0 && key_count_ >= keys.size());
  key_count_ -= keys.size();
  deadlines_.erase({ended.expires, number});
  by_booking_.erase(ended.booking);
  partitions_->Release(ended.partition);
  ended = Speculation();
  free_numbers_.push_back(number);
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
  for (const Number number : found->second) {
    const Speculation& speculation = speculations_[number];
    if (speculation.generation == generations_[speculation.holder]) {
      visit(speculation.holder, speculation.partition);
    }
  }
}

}  // namespace cairn::router
