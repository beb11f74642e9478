// LatencyRecorder: quantiles of durations in 15 KiB, whatever their number.
//
// A log-linear histogram of nanoseconds: 32 steps for each power of two, so that a quantile is off
// by at most 1/64 of its value. Not thread-safe: each thread has its own, merged at the end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace cairn::replay {

class LatencyRecorder {
 public:
  // Below zero counts as zero, and what does not fit in 63 bits of nanoseconds as the most that
  // does.
  void Record(absl::Duration latency);

  // As if all that `other` recorded had been recorded here.
  void Merge(const LatencyRecorder& other);

  uint64_t count() const { return count_; }

  // The value that ceil(q * count) of the recorded ones do not exceed; zero when nothing was
  // recorded. REQUIRES: 0 < q <= 1.
  absl::Duration Quantile(double q) const;

 private:
  static constexpr int kStepBits = 5;
  static constexpr size_t kSteps = size_t{1} << kStepBits;
  // Values below kSteps exactly; then kSteps for each further bit of a 63-bit value.
  static constexpr size_t kBuckets = kSteps * (63 - kStepBits + 1);

  static size_t BucketOf(uint64_t nanoseconds);
  static uint64_t MiddleOf(size_t bucket);

  std::array<uint64_t, kBuckets> counts_{};
  uint64_t count_ = 0;
  uint64_t min_ns_ = UINT64_MAX;
  uint64_t max_ns_ = 0;
};

}  // namespace cairn::replay
