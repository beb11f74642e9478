#include "cache_node/store/policies/reuse/reuse_worth.h"

namespace cairn::node {

// Held from the start of bin b to the end of bin t, a block brings hits[t + 1] - hits[b] and costs
// cost[t + 1] - cost[b], both for each that lives to bin b: so the best t is where the line from b
// is steepest, which is the next corner of the upper hull of the points from b on. The hull is
// built from the last bin back.
std::array<double, kReuseAgeBins> ReuseWorth(const std::array<float, kReuseAgeBins>& hazard) {
  constexpr size_t kPoints = kReuseAgeBins + 1;
  std::array<double, kPoints> hits{};
  std::array<double, kPoints> cost{};
  double alive = 1;
  for (size_t bin = 0; bin < kReuseAgeBins; ++bin) {
    const double chance = hazard[bin];
    const auto width = static_cast<double>(kReuseAgeEdges[bin + 1] - kReuseAgeEdges[bin]);
    hits[bin + 1] = hits[bin] + alive * chance;
    cost[bin + 1] = cost[bin] + alive * width * (1 - chance / 2);
    alive *= 1 - chance;
  }
  const auto slope = [&hits, &cost](size_t from, size_t to) {
    const double requests = cost[to] - cost[from];
    return requests > 0 ? (hits[to] - hits[from]) / requests : 0.0;
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
