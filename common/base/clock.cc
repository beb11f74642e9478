#include "common/base/clock.h"

#include <chrono>

#include "absl/time/clock.h"

namespace cairn {

absl::Time SystemClock::SteadyNow() const {
  return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

absl::Time SystemClock::WallNow() const { return absl::Now(); }

}  // namespace cairn
