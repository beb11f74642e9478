// Runs one seed twice and compares all that happened, by digest; and two seeds, which must differ.
#include <gtest/gtest.h>

#include "tests/sim/simulation.h"

namespace cairn::sim {
namespace {

TEST(SimDeterminismTest, OneSeedGivesOneHistory) {
  for (const uint64_t seed : {3, 17, 101}) {
    const SimResult first = Simulation(SimOptions::Of(seed)).Run();
    const SimResult second = Simulation(SimOptions::Of(seed)).Run();
    EXPECT_TRUE(first.ok()) << first.verdict.what;
    EXPECT_EQ(first.digest, second.digest) << "seed " << seed;
    EXPECT_EQ(first.steps, second.steps) << "seed " << seed;
    EXPECT_EQ(first.tally.hit_blocks, second.tally.hit_blocks) << "seed " << seed;
  }
}

TEST(SimDeterminismTest, AnotherSeedGivesAnother) {
  EXPECT_NE(Simulation(SimOptions::Of(3)).Run().digest, Simulation(SimOptions::Of(4)).Run().digest);
}

}  // namespace
}  // namespace cairn::sim
