#include "tests/bench/routing/rivals.h"

#include <algorithm>

namespace cairn::bench {

Rivals FindRivals(const PolicyResult& ours, absl::Span<const PolicyResult> others) {
  Rivals rivals;
  for (const PolicyResult& other : others) {
    if (other.hit < ours.hit - kHitMargin) continue;
    if (other.p99_s < ours.p99_s / kWaitMargin) rivals.policies.push_back(other.policy);
    if (other.p99_s > 0) {
      rivals.p99_over_best = std::max(rivals.p99_over_best, ours.p99_s / other.p99_s);
    }
  }
  return rivals;
}

}  // namespace cairn::bench
