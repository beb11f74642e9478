#include "client/replay/latency_recorder.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "common/base/check.h"

namespace cairn::replay {

size_t LatencyRecorder::BucketOf(uint64_t nanoseconds) {
  if (nanoseconds < kSteps) return nanoseconds;
  const int shift = static_cast<int>(std::bit_width(nanoseconds)) - kStepBits - 1;
  const size_t bucket = kSteps * static_cast<size_t>(shift) + (nanoseconds >> shift);
  CAIRN_CHECK(bucket < kBuckets);
  return bucket;
}

uint64_t LatencyRecorder::MiddleOf(size_t bucket) {
  if (bucket < 2 * kSteps) return bucket;
  const size_t shift = bucket / kSteps - 1;
  const uint64_t low = (bucket % kSteps + kSteps) << shift;
  return low + (uint64_t{1} << shift) / 2;
}

void LatencyRecorder::Record(absl::Duration latency) {
  // Saturates at the largest int64.
  const int64_t nanoseconds = std::max<int64_t>(0, absl::ToInt64Nanoseconds(latency));
  const auto value = static_cast<uint64_t>(nanoseconds);
  ++counts_[BucketOf(value)];
  ++count_;
  min_ns_ = std::min(min_ns_, value);
  max_ns_ = std::max(max_ns_, value);
}

void LatencyRecorder::Merge(const LatencyRecorder& other) {
  for (size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  min_ns_ = std::min(min_ns_, other.min_ns_);
  max_ns_ = std::max(max_ns_, other.max_ns_);
}

absl::Duration LatencyRecorder::Quantile(double q) const {
  CAIRN_CHECK(q > 0 && q <= 1);
  if (count_ == 0) return absl::ZeroDuration();
  const double rank = std::ceil(q * static_cast<double>(count_));
  const uint64_t wanted = std::clamp<uint64_t>(static_cast<uint64_t>(rank), 1, count_);
  uint64_t passed = 0;
  size_t bucket = 0;
  while ((passed += counts_[bucket]) < wanted) ++bucket;
  const uint64_t value = std::clamp(MiddleOf(bucket), min_ns_, max_ns_);
  return absl::Nanoseconds(static_cast<int64_t>(value));
}

}  // namespace cairn::replay
