// 10,000 random openings, appends, forks, truncations, cancels and kills, among removals,
// retirements, evictions and seals, against a plain model: every sequence holds just its own rows,
// and in the end nothing is held. The seed is the test's parameter.
#include "tests/cache_node/decode/sequence/random_sequences.h"

#include <gtest/gtest.h>

namespace cairn::node {
namespace {

class RandomSequencesTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(RandomSequencesTest, EachHoldsItsOwnRowsAndNothingIsLeft) {
  RandomSequences run(GetParam());
  for (int step = 0; step < 10'000 && !HasFailure(); ++step) {
    SCOPED_TRACE(step);
    run.Step();
  }
  run.End();
  for (const auto& [what, count] : run.happened) RecordProperty(what, static_cast<int>(count));
  for (const char* what :
       {"opened", "openings refused", "rows appended", "bad rows", "forks", "forks refused",
        "truncations", "windows", "closed", "died", "ended by removals", "retirements",
        "seals of outcome 0", "seals of outcome 1", "seals of outcome 3", "seals of outcome 5",
        "sealed bytes compared", "checked"}) {
    EXPECT_GT(run.happened[what], 0u) << what;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomSequencesTest, ::testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace cairn::node
