// Who counts as better than the default: figures on both sides of each margin.

#include "tests/bench/routing/rivals.h"

#include <gmock/gmock.h>

namespace cairn::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(RivalsTest, AsManyHitsAndShorterWaitsMakeARival) {
  const PolicyResult ours{"ours", 0.35, 102};
  const Rivals rivals = FindRivals(ours, {{"fewer hits", 0.3489, 50},
                                          {"as many", 0.3491, 99.9},
                                          {"more", 0.36, 80},
                                          {"hardly shorter", 0.36, 100.1}});
  EXPECT_THAT(rivals.policies, ElementsAre("as many", "more"));
  EXPECT_NEAR(rivals.p99_over_best, 102.0 / 80, 1e-12);
}

TEST(RivalsTest, NobodyIsOneWhereNobodyHitsAsMuch) {
  const Rivals rivals = FindRivals({"ours", 0.35, 100}, {{"fast", 0.1, 1}});
  EXPECT_THAT(rivals.policies, IsEmpty());
  EXPECT_EQ(rivals.p99_over_best, 0);
}

}  // namespace
}  // namespace cairn::bench
