// The worth of a block beside what trying every bin to give up at finds, on random chances.

#include "cache_node/store/policies/reuse/reuse_worth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace cairn::node {
namespace {

double WorthByTrying(const std::array<float, kReuseAgeBins>& hazard, size_t from) {
  double alive = 1;
  double hits = 0;
  double cost = 0;
  double best = 0;
  for (size_t bin = from; bin < kReuseAgeBins; ++bin) {
    hits += alive * hazard[bin];
    cost += alive * static_cast<double>(kReuseAgeEdges[bin + 1] - kReuseAgeEdges[bin]) *
            (1 - hazard[bin] / 2.0);
    alive *= 1 - hazard[bin];
    best = std::max(best, hits / cost);
  }
  return best;
}

TEST(ReuseAgesTest, EdgesRiseTwiceAnOctave) {
  EXPECT_EQ(kReuseAgeEdges[0], 0u);
  EXPECT_EQ(kReuseAgeEdges[1], 1u);
  for (size_t i = 1; i <= kReuseAgeBins; ++i) EXPECT_GT(kReuseAgeEdges[i], kReuseAgeEdges[i - 1]);
  EXPECT_EQ(kReuseAgeEdges[21], 1024u);
  EXPECT_EQ(kReuseAgeEdges[22], 1448u);
  EXPECT_GE(kReuseAgeEdges[kReuseAgeBins], uint64_t{1} << 20);
}

TEST(ReuseWorthTest, IsTheBestOfAllTimesToGiveUp) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<float> any(0, 1);
  for (int round = 0; round < 300; ++round) {
    std::array<float, kReuseAgeBins> hazard{};
    const float scale = any(random);
    for (float& chance : hazard) chance = any(random) < 0.3f ? 0.0f : scale * any(random);
    const std::array<double, kReuseAgeBins> worth = ReuseWorth(hazard);
    for (size_t bin = 0; bin < kReuseAgeBins; ++bin) {
      EXPECT_NEAR(worth[bin], WorthByTrying(hazard, bin), 1e-6) << round << " " << bin;
    }
  }
}

TEST(ReuseWorthTest, RisesTowardsAnAgeAtWhichUseIsLikelyAndFallsBehindIt) {
  std::array<float, kReuseAgeBins> hazard{};
  hazard.fill(0.01f);
  constexpr size_t kLikely = 20;
  hazard[kLikely] = 0.8f;
  const std::array<double, kReuseAgeBins> worth = ReuseWorth(hazard);
  EXPECT_LT(worth[kLikely - 6], worth[kLikely - 2]);
  EXPECT_LT(worth[kLikely - 2], worth[kLikely]);
  EXPECT_GT(worth[kLikely], 20 * worth[kLikely + 1]);
}

TEST(ReuseWorthTest, CertainAndImpossibleUseAreNumbers) {
  std::array<float, kReuseAgeBins> hazard{};
  for (const double worth : ReuseWorth(hazard)) EXPECT_EQ(worth, 0);
  hazard.fill(1);
  EXPECT_DOUBLE_EQ(ReuseWorth(hazard)[0], 2);  // Half a request for one hit.
}

}  // namespace
}  // namespace cairn::node
