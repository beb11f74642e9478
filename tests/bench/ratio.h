// Ratio: a product against a floor, measured in turns within one run.
//
// Absolute times mean little on shared machines: both are slowed down by the same neighbours. Each
// round times the floor and then the product, so that what disturbs one disturbs the other.
#pragma once

#include <functional>

#include "absl/time/time.h"

namespace cairn::bench {

struct RatioOptions {
  int rounds_min = 20;
  int rounds_max = 2000;
  absl::Duration budget = absl::Seconds(2);  // No round begins after it, once rounds_min are done.
};

struct RatioResult {
  double product_seconds = 0;  // Of the fastest round, as below.
  double floor_seconds = 0;
  double ratio = 0;  // floor_seconds / product_seconds: 1 is as fast as the floor.
  int rounds = 0;
};

// Calls floor() and product() in turns, each doing the same amount of work at every call. The
// fastest call of each counts: it is the one that was disturbed least. The first call of each is
// not timed.
RatioResult MeasureRatio(const std::function<void()>& product, const std::function<void()>& floor,
                         const RatioOptions& options);

}  // namespace cairn::bench
