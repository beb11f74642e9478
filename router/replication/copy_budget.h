// CopyBudget: how many bytes copies may move in a second, and how many may be under way. A function
// of the times that it is given; not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"

namespace cairn::router {

class CopyBudget {
 public:
  CopyBudget(uint64_t bytes_per_second, double outstanding_seconds)
      : rate_(static_cast<double>(bytes_per_second)),
        outstanding_max_(rate_ * outstanding_seconds),
        left_(rate_) {}

  // Takes them, where it is out of debt and not too much is under way. One copy may be larger than
  // a second's worth: what comes after it waits.
  bool Take(uint64_t bytes, absl::Time now) {
    left_ = std::min(rate_, left_ + rate_ * absl::ToDoubleSeconds(now - filled_));
    filled_ = now;
    const auto wanted = static_cast<double>(bytes);
    const bool fits = outstanding_ == 0 || outstanding_ + wanted <= outstanding_max_;
    if (left_ <= 0 || !fits) return false;
    left_ -= wanted;
    outstanding_ += wanted;
    return true;
  }
  // The copy is over and moved so many: what was booked and not moved is given back.
  void End(uint64_t booked, uint64_t moved) {
    outstanding_ = std::max(0.0, outstanding_ - static_cast<double>(booked));
    left_ = std::min(rate_, left_ + static_cast<double>(booked) - static_cast<double>(moved));
  }

  double outstanding_bytes() const { return outstanding_; }

 private:
  const double rate_;
  const double outstanding_max_;
  double left_;  // Negative: debt.
  absl::Time filled_ = absl::InfinitePast();
  double outstanding_ = 0;
};

}  // namespace cairn::router
