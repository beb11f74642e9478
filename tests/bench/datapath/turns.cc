#include "tests/bench/datapath/turns.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "common/base/check.h"

namespace cairn::bench {
namespace {

double Median(std::vector<double> values) {
  CAIRN_CHECK(!values.empty());
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

absl::StatusOr<Turns> MeasureTurns(const TimedCall& product, const TimedCall& floor, int rounds,
                                   bool warm_up) {
  std::vector<double> products;
  std::vector<double> floors;
  for (int round = warm_up ? 0 : 1; round <= rounds; ++round) {
    const absl::StatusOr<double> floor_seconds = floor();
    if (!floor_seconds.ok()) return floor_seconds.status();
    const absl::StatusOr<double> product_seconds = product();
    if (!product_seconds.ok()) return product_seconds.status();
    if (round == 0) continue;
    floors.push_back(*floor_seconds);
    products.push_back(*product_seconds);
  }
  return Turns{.product_seconds = Median(products), .floor_seconds = Median(floors)};
}

absl::StatusOr<double> MedianOf(const TimedCall& call, int rounds) {
  std::vector<double> values;
  for (int round = 0; round <= rounds; ++round) {
    const absl::StatusOr<double> seconds = call();
    if (!seconds.ok()) return seconds.status();
    if (round > 0) values.push_back(*seconds);
  }
  return Median(values);
}

absl::StatusOr<double> SecondsOf(const std::function<absl::Status()>& work) {
  const auto start = std::chrono::steady_clock::now();
  if (absl::Status status = work(); !status.ok()) return status;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace cairn::bench
