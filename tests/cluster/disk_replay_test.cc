// A replay through a router and a node whose host memory holds a tenth of the blocks, with disk for
// the rest; half-way the node is killed and started again. It hits as an unlimited cache would but
// for the requests under way and what was not yet on disk: nothing is wrong and nothing fails.
#include <filesystem>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "tests/cluster/cluster_fixture.h"
#include "tests/cluster/staged_replay.h"

namespace cairn::testing {
namespace {

constexpr size_t kRequests = 600;
constexpr double kHitRateLoss = 0.01;
// Of the worker: what is computed within the time that a block takes to disk is a small part.
constexpr double kComputeTokensPerSecond = 150'000;
constexpr absl::Duration kReplayTakes = absl::Seconds(60);

class DiskReplayTest : public ClusterTest {
 protected:
  DiskReplayTest() : folder_(MakeTempFolder()) {}
  ~DiskReplayTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  void Start(uint64_t seed) {
    requests_ = Generate(seed, kRequests);
    ASSERT_NO_FATAL_FAILURE(
        AddNodes(1, {"--host-memory=4MiB", "--disk-bytes=256MiB", "--disk-index-memory=16MiB",
                     "--spill-block-bytes=1MiB", "--spill-file-age-ms=100",
                     absl::StrCat("--disk-dir=", folder_, "/disk")}));
    ASSERT_NO_FATAL_FAILURE(StartRouter(NodeAddresses()));
    // Fewer prompts at once than fit into the pool.
    replay::ReplayOptions options = SmallBlocks();
    options.workers = 4;
    options.compute_tokens_per_second = kComputeTokensPerSecond;
    replay_ = std::make_unique<StagedReplay>(options, Target(), requests_);
  }
  void RunUntil(size_t count) {
    replay_->RunUntil(count);
    ASSERT_TRUE(replay_->AwaitDone(count, kReplayTakes)) << replay_->done() << " of " << count;
  }
  void ExpectAsUnlimited() {
    const absl::StatusOr<replay::ReplayReport> report = replay_->Finish();
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->requests, kRequests);
    EXPECT_EQ(report->failed_requests, 0u);
    EXPECT_EQ(report->wrong_bytes, 0u);
    EXPECT_EQ(report->uncached_requests, 0u);
    const auto share = [&](uint64_t tokens) {
      return static_cast<double>(tokens) / static_cast<double>(report->tokens_looked_up);
    };
    std::cout << "hit " << share(report->hit_tokens) << " of " << share(report->ideal_hit_tokens)
              << ", LRU in memory " << share(report->lru_hit_tokens) << "; blocks from host "
              << report->hit_blocks_host << ", from disk " << report->hit_blocks_disk << ", stored "
              << report->stored_blocks << "\n";
    EXPECT_GT(share(report->hit_tokens), share(report->ideal_hit_tokens) - kHitRateLoss);
    EXPECT_LT(share(report->lru_hit_tokens), share(report->ideal_hit_tokens) - 2 * kHitRateLoss)
        << "memory alone would do";
    EXPECT_GT(report->hit_blocks_disk, 0u);
  }

  const std::string folder_;
  std::vector<replay::TraceRequest> requests_;
  std::unique_ptr<StagedReplay> replay_;
};

TEST_F(DiskReplayTest, AsAnUnlimitedCache) {
  ASSERT_NO_FATAL_FAILURE(Start(11));
  ExpectAsUnlimited();
}

TEST_F(DiskReplayTest, AsAnUnlimitedCacheThoughTheNodeIsKilledHalfWay) {
  ASSERT_NO_FATAL_FAILURE(Start(11));
  RunUntil(kRequests / 2);
  // Without a pause: what was stored last may be on its way to disk.
  node(0).Kill9();
  ASSERT_NO_FATAL_FAILURE(RestartNode(0));
  ASSERT_TRUE(AwaitList(
      [](const ReplicaList& list) { return list.holders[0].state == v1::HOLDER_STATE_EXACT; }));
  ExpectAsUnlimited();
}

}  // namespace
}  // namespace cairn::testing
