#include "tests/bench/ratio.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "common/base/check.h"

namespace cairn::bench {
namespace {

double SecondsOf(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

RatioResult MeasureRatio(const std::function<void()>& product, const std::function<void()>& floor,
                         const RatioOptions& options) {
  CAIRN_CHECK(options.rounds_min > 0);
  CAIRN_CHECK(options.rounds_max >= options.rounds_min);
  floor();
  product();
  RatioResult result;
  result.product_seconds = std::numeric_limits<double>::infinity();
  result.floor_seconds = std::numeric_limits<double>::infinity();
  const double budget = absl::ToDoubleSeconds(options.budget);
  double spent = 0;
  while (result.rounds < options.rounds_min ||
         (result.rounds < options.rounds_max && spent < budget)) {
    const double floor_seconds = SecondsOf(floor);
    const double product_seconds = SecondsOf(product);
    result.floor_seconds = std::min(result.floor_seconds, floor_seconds);
    result.product_seconds = std::min(result.product_seconds, product_seconds);
    spent += floor_seconds + product_seconds;
    ++result.rounds;
  }
  CAIRN_CHECK(result.product_seconds > 0);
  result.ratio = result.floor_seconds / result.product_seconds;
  return result;
}

}  // namespace cairn::bench
