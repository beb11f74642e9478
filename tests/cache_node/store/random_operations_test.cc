// Thousands of random calls under a seed against a model of what may be seen (random_store.h), with
// a full audit of the store every hundred calls; at the end all clients die and nothing may be left
// held.
#include <gmock/gmock.h>

#include "tests/cache_node/store/random_store.h"

namespace cairn::node {
namespace {

class RandomOperationsTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(RandomOperationsTest, NothingUnseemlyIsSeenAndNothingIsLeftBehind) {
  RandomStore random(GetParam());
  for (int i = 0; i < 30'000; ++i) {
    random.Step();
    if (i % 100 != 0) continue;
    const absl::Status audit = random.store().store->Audit();
    ASSERT_TRUE(audit.ok()) << "after " << i << " calls: " << audit;
  }
  EXPECT_GT(random.committed(), 1500u);
  EXPECT_GT(random.reads_checked(), 400u);
  EXPECT_GT(random.stayed(), 100u);
  EXPECT_GT(random.store().counters.evicted_blocks, 100u);
  EXPECT_GT(random.store().counters.segment_remakes, 10u);
  EXPECT_GT(random.store().counters.expired_tokens, 10u);
  random.DropClients();
  const absl::Status quiet = random.store().Quiet();
  EXPECT_TRUE(quiet.ok()) << quiet;
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomOperationsTest, ::testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace cairn::node
