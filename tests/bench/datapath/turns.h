// A product and its floor in turns, as medians.
//
// Each round times the floor and then the product, so that what disturbs one disturbs the other;
// both do the same work in every round. Medians, not bests: a path that is fast only sometimes is
// not fast.
#pragma once

#include <functional>

#include "absl/status/statusor.h"

namespace cairn::bench {

struct Turns {
  double product_seconds = 0;
  double floor_seconds = 0;
  // floor_seconds / product_seconds: 1 is as fast as the floor.
  double ratio() const { return floor_seconds / product_seconds; }
};

// Seconds of one call, measured by the call itself, so that it may prepare and tidy up untimed.
using TimedCall = std::function<absl::StatusOr<double>()>;

// One call of each that does not count, unless told not to `warm_up`, then `rounds` of both. The
// first failure, if any.
absl::StatusOr<Turns> MeasureTurns(const TimedCall& product, const TimedCall& floor, int rounds,
                                   bool warm_up = true);

// The median of `rounds` calls after an untimed one.
absl::StatusOr<double> MedianOf(const TimedCall& call, int rounds);

// Seconds that `work` takes, or its failure.
absl::StatusOr<double> SecondsOf(const std::function<absl::Status()>& work);

}  // namespace cairn::bench
