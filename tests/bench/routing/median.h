// Means, quantiles and medians of figures.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace cairn::bench {

// 0 of none.
inline double MeanOf(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

// sorted[floor(percent / 100 * n)], 0 of none; reorders. REQUIRES: percent < 100.
inline double QuantileOf(std::vector<double>* values, size_t percent) {
  if (values->empty()) return 0;
  const auto place = values->begin() + static_cast<std::ptrdiff_t>(values->size() * percent / 100);
  std::nth_element(values->begin(), place, values->end());
  return *place;
}

// Of one figure of all runs. REQUIRES: a run.
template <typename Figures>
double MedianOf(const std::vector<Figures>& runs, double Figures::*figure) {
  std::vector<double> values;
  for (const Figures& run : runs) values.push_back(run.*figure);
  return QuantileOf(&values, 50);
}

}  // namespace cairn::bench
