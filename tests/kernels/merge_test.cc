// Merging against attention over everything at once, over random splits and orders of merging.
#include "kernels/attention/merge.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace cairn::kernels {
namespace {

constexpr uint64_t kDim = 16;
constexpr uint64_t kTokens = 40;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Part {
  std::vector<float> output = std::vector<float>(kDim, 0.0f);
  float log_sum_exp = -INFINITY;

  PartialResult View() const { return {output.data(), &log_sum_exp}; }
};

struct Tokens {
  std::vector<double> logits;
  std::vector<std::vector<double>> values;

  explicit Tokens(uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal(0, 3);
    for (uint64_t t = 0; t < kTokens; ++t) {
      logits.push_back(normal(random));
      values.emplace_back();
      for (uint64_t d = 0; d < kDim; ++d) values.back().push_back(normal(random));
    }
  }

  // Attention over tokens [begin, end).
  Part Over(uint64_t begin, uint64_t end) const {
    Part part;
    double sum = 0;
    std::vector<double> output(kDim, 0);
    for (uint64_t t = begin; t < end; ++t) {
      sum += std::exp(logits[t]);
      for (uint64_t d = 0; d < kDim; ++d) output[d] += std::exp(logits[t]) * values[t][d];
    }
    for (uint64_t d = 0; d < kDim && begin < end; ++d) {
      part.output[d] = static_cast<float>(output[d] / sum);
    }
    part.log_sum_exp = static_cast<float>(std::log(sum));
    return part;
  }
};

Part Merge(const std::vector<Part>& parts) {
  std::vector<PartialResult> views;
  for (const Part& part : parts) views.push_back(part.View());
  Part merged;
  merged.output.assign(kDim, kNan);
  merged.log_sum_exp = kNan;
  MergePartials(views.data(), views.size(), 1, kDim, merged.output.data(), &merged.log_sum_exp);
  return merged;
}

void ExpectNear(const Part& a, const Part& b) {
  EXPECT_NEAR(a.log_sum_exp, b.log_sum_exp, 1e-5);
  for (uint64_t d = 0; d < kDim; ++d) EXPECT_NEAR(a.output[d], b.output[d], 2e-5);
}

TEST(MergeTest, AnyTreeOfAnySplitIsTheWhole) {
  std::mt19937_64 random(7);
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const Tokens tokens(seed);
    std::vector<Part> parts;
    for (uint64_t begin = 0; begin < kTokens;) {
      const uint64_t end = std::min(kTokens, begin + 1 + random() % 12);
      parts.push_back(tokens.Over(begin, end));
      if (random() % 4 == 0) parts.emplace_back();
      begin = end;
    }
    ExpectNear(Merge(parts), tokens.Over(0, kTokens));
    while (parts.size() > 1) {  // Two neighbours at a time.
      const size_t i = random() % (parts.size() - 1);
      parts[i] = Merge({parts[i], parts[i + 1]});
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    }
    ExpectNear(parts[0], tokens.Over(0, kTokens));
  }
}

TEST(MergeTest, EmptyPartsAreNotRead) {
  const Tokens tokens(1);
  const Part part = tokens.Over(3, 9);
  Part empty;
  empty.output.assign(kDim, kNan);
  for (const std::vector<Part>& parts :
       {std::vector<Part>{empty, part}, {part, empty}, {empty, part, empty}}) {
    const Part merged = Merge(parts);
    EXPECT_EQ(merged.output, part.output);
    EXPECT_EQ(merged.log_sum_exp, part.log_sum_exp);
  }
}

TEST(MergeTest, OnlyEmptyPartsAreZerosAndMinusInfinity) {
  Part empty;
  empty.output.assign(kDim, kNan);
  for (size_t count : {0, 1, 3}) {
    const Part merged = Merge(std::vector<Part>(count, empty));
    EXPECT_THAT(merged.output, testing::Each(0.0f));
    EXPECT_EQ(merged.log_sum_exp, -INFINITY);
  }
}

TEST(MergeTest, FarApartLogSumExpsAreTheLargest) {
  Part low, high;
  low.output.assign(kDim, 5.0f);
  low.log_sum_exp = -5e5f;
  high.output.assign(kDim, 2.0f);
  high.log_sum_exp = 1e5f;
  const Part merged = Merge({low, high});
  EXPECT_THAT(merged.output, testing::Each(2.0f));
  EXPECT_EQ(merged.log_sum_exp, 1e5f);
}

TEST(MergeTest, IntoTheFirstPart) {
  const Tokens tokens(2);
  Part first = tokens.Over(0, 10);
  const Part second = tokens.Over(10, kTokens);
  const PartialResult views[] = {first.View(), second.View()};
  MergePartials(views, 2, 1, kDim, first.output.data(), &first.log_sum_exp);
  ExpectNear(first, tokens.Over(0, kTokens));
}

}  // namespace
}  // namespace cairn::kernels
