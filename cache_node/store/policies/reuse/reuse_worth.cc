#include "cache_node/store/policies/reuse/reuse_worth.h"

namespace cairn::node {

// The best bin to give up at is where the line of hits over cost is steepest: the next corner of
// the upper hull of the points (cost up to bin t, hits up to bin t) from bin b on. The hull is
// built from the last bin back. What comes from a bin on is summed from the end, for one that is
// alive then, so that nothing is the difference of two large numbers.
std::array<double, kReuseAgeBins> ReuseWorth(const std::array<float, kReuseAgeBins>& hazard) {
  constexpr size_t kPoints = kReuseAgeBins + 1;
  std::array<double, kPoints> hits{};  // From that bin on.
  std::array<double, kPoints> cost{};
  for (size_t bin = kReuseAgeBins; bin-- > 0;) {
    const double chance = hazard[bin];
    const auto width = static_cast<double>(kReuseAgeEdges[bin + 1] - kReuseAgeEdges[bin]);
    hits[bin] = chance + (1 - chance) * hits[bin + 1];
    cost[bin] = width * (1 - chance / 2) + (1 - chance) * cost[bin + 1];
  }
  std::array<double, kPoints> alive{};
  alive[0] = 1;
  for (size_t bin = 0; bin < kReuseAgeBins; ++bin)
    alive[bin + 1] = alive[bin] * (1.0 - hazard[bin]);
  const auto slope = [&hits, &cost, &alive](size_t from, size_t to) {
    const double lives = alive[from] > 0 ? alive[to] / alive[from] : 0;
    return (hits[from] - lives * hits[to]) / (cost[from] - lives * cost[to]);
  };
  std::array<double, kReuseAgeBins> worth{};
  std::array<size_t, kPoints> hull{};  // The nearest corner last.
  size_t corners = 0;
  hull[corners++] = kReuseAgeBins;
  for (size_t bin = kReuseAgeBins; bin-- > 0;) {
    double best = slope(bin, hull[corners - 1]);
    while (corners > 1) {
      const double farther = slope(bin, hull[corners - 2]);
      if (farther < best) break;
      best = farther;
      --corners;
    }
    worth[bin] = best;
    hull[corners++] = bin;
  }
  return worth;
}

}  // namespace cairn::node
