#include "cache_node/store/removed_ring.h"

#include <algorithm>
#include <limits>

#include "common/base/check.h"

namespace cairn::node {

RemovedRing::RemovedRing(size_t entries_max) : entries_max_(entries_max) {
  CAIRN_CHECK(entries_max > 0 && entries_max <= std::numeric_limits<uint32_t>::max());
  ring_.reserve(entries_max);
  reasons_.reserve(entries_max);
}

void RemovedRing::AdvanceTo(absl::Time now) {
  if (start_ == absl::InfinitePast()) start_ = now;
  now_ = std::max(now_, now);
}

uint32_t RemovedRing::SecondsAt(absl::Time now) const {
  const int64_t seconds = start_ == absl::InfinitePast() ? 0 : absl::ToInt64Seconds(now - start_);
  return static_cast<uint32_t>(
      std::clamp<int64_t>(seconds, 0, std::numeric_limits<uint32_t>::max()));
}

void RemovedRing::Remember(PartitionIndex partition, const BlockKey& key, RemovalReason reason) {
  CAIRN_CHECK(reason != RemovalReason::kNone);
  const Id id{partition, key};
  if (ring_.size() < entries_max_) {
    ring_.push_back(id);
  } else {
    auto oldest = reasons_.find(ring_[next_]);
    if (oldest != reasons_.end() && oldest->second.place == next_) reasons_.erase(oldest);
    ring_[next_] = id;
  }
  reasons_.insert_or_assign(id, Memory{reason, static_cast<uint32_t>(next_), SecondsAt(now_)});
  next_ = (next_ + 1) % entries_max_;
  CAIRN_CHECK(reasons_.size() <= entries_max_);
}

void RemovedRing::Forget(PartitionIndex partition, const BlockKey& key) {
  reasons_.erase(Id{partition, key});
}

RemovalReason RemovedRing::ReasonOf(PartitionIndex partition, const BlockKey& key) const {
  auto it = reasons_.find(Id{partition, key});
  return it == reasons_.end() ? RemovalReason::kNone : it->second.reason;
}

std::optional<absl::Duration> RemovedRing::AgeOf(PartitionIndex partition, const BlockKey& key,
                                                 absl::Time now) const {
  const auto it = reasons_.find(Id{partition, key});
  if (it == reasons_.end()) return std::nullopt;
  return absl::Seconds(SecondsAt(now) - std::min(SecondsAt(now), it->second.left_s));
}

}  // namespace cairn::node
