// LearnedRate: tokens a second, from what was reported, starting at a configured prior.
//
// Total tokens over total seconds, each report weighing kDecay of the next, so that long requests
// count for more than short ones and the prior fades. Stays within kFactorMax of the prior,
// whatever is reported, and no single report weighs so much that others could not outweigh it. A
// value.
#pragma once

#include <algorithm>
#include <cmath>

#include "common/base/check.h"

namespace cairn::router {

class LearnedRate {
 public:
  static constexpr double kDecay = 0.95;
  static constexpr double kFactorMax = 1000;

  // The prior weighs as much as a report of `prior_weight_seconds`.
  explicit LearnedRate(double prior_per_second, double prior_weight_seconds = 1)
      : prior_(prior_per_second),
        tokens_(prior_per_second * prior_weight_seconds),
        seconds_(prior_weight_seconds) {
    CAIRN_CHECK(prior_per_second > 0 && prior_weight_seconds > 0);
  }

  // What is no measurement (no tokens, no time, not finite) changes nothing. A rate that is out of
  // bounds counts as the bound, and for as long as its tokens take at that.
  void Add(double tokens, double seconds) {
    if (!(tokens > 0) || !(seconds > 0) || !std::isfinite(tokens / seconds)) return;
    seconds = std::clamp(seconds, tokens / (prior_ * kFactorMax), tokens / (prior_ / kFactorMax));
    tokens_ = tokens_ * kDecay + tokens;
    seconds_ = seconds_ * kDecay + seconds;
  }

  double per_second() const {
    return std::clamp(tokens_ / seconds_, prior_ / kFactorMax, prior_ * kFactorMax);
  }

 private:
  double prior_;
  double tokens_;
  double seconds_;
};

}  // namespace cairn::router
