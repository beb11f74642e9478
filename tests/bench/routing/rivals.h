// Rivals: listed policies that are better than the default one on a trace: they hit as much, within
// kHitMargin, and their p99 is below the default's by more than kWaitMargin.
//
// Pure functions.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"

namespace cairn::bench {

struct PolicyResult {
  std::string policy;
  double hit = 0;
  double p99_s = 0;
};

struct Rivals {
  std::vector<std::string> policies;
  // The default's p99 over the least of those that hit as much; 0 when none does.
  double p99_over_best = 0;
};

inline constexpr double kHitMargin = 0.001;
inline constexpr double kWaitMargin = 1.02;

Rivals FindRivals(const PolicyResult& ours, absl::Span<const PolicyResult> others);

}  // namespace cairn::bench
