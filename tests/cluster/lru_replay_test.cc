// One node that holds far less than a replay asks for, and one worker: it must hit exactly what one
// LRU of as many blocks hits, block by block.
#include "tests/cluster/cluster_fixture.h"
#include "tests/cluster/staged_replay.h"

namespace cairn::testing {
namespace {

constexpr uint64_t kRequests = 500;

class LruReplayTest : public ClusterTest {};

TEST_F(LruReplayTest, OneNodeAndOneWorkerHitWhatAnLruHits) {
  ASSERT_NO_FATAL_FAILURE(AddNodes(1, {"--host-memory=1MiB", "--eviction-policy=lru"}));
  replay::ReplayOptions options = SmallBlocks();
  options.workers = 1;
  replay::ReplayTarget target = Target();
  target.node_address = NodeAddresses()[0];
  StagedReplay replay(options, target, Generate(1, kRequests));
  const absl::StatusOr<replay::ReplayReport> report = replay.Finish();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->failed_requests, 0u);
  EXPECT_EQ(report->wrong_bytes, 0u);
  EXPECT_EQ(report->lru_capacity_blocks, (1u << 20) / options.block_bytes);
  EXPECT_GT(report->stored_blocks, 4 * report->lru_capacity_blocks) << "hardly any eviction";
  EXPECT_GT(report->lru_hit_blocks, 0u);
  EXPECT_LT(report->lru_hit_blocks, report->ideal_hit_blocks);
  EXPECT_EQ(report->hit_blocks, report->lru_hit_blocks);
}

}  // namespace
}  // namespace cairn::testing
