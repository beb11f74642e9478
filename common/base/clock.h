// Clock: the only way that our code learns the time.
//
// Steady time orders and expires things (leases, tokens, silence); wall time is for people and
// records. Thread-safe. FakeClock in tests/testing moves by hand.
#pragma once

#include "absl/time/time.h"

namespace cairn {

class Clock {
 public:
  virtual ~Clock() = default;

  // Never goes back and does not follow changes of the wall clock. Only differences mean anything.
  virtual absl::Time SteadyNow() const = 0;
  virtual absl::Time WallNow() const = 0;
};

// The machine's clocks.
class SystemClock final : public Clock {
 public:
  absl::Time SteadyNow() const override;
  absl::Time WallNow() const override;
};

}  // namespace cairn
