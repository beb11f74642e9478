// A replay through a router and a node with three tiers: an emulated device for half of the blocks,
// host memory for less, and disk for all; half-way the node is killed and started again. Blocks
// come from each tier, none has wrong bytes, and it hits as an unlimited cache would.
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

class DeviceReplayTest : public ClusterTest {
 protected:
  DeviceReplayTest() : folder_(MakeTempFolder()) {}
  ~DeviceReplayTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  void Start(const std::string& device_bytes, std::vector<std::string> more_flags) {
    requests_ = Generate(11, kRequests);
    std::vector<std::string> flags = {"--host-memory=4MiB", "--device=emulated",
                                      absl::StrCat("--device-bytes=", device_bytes),
                                      "--device-index-memory=16MiB"};
    flags.insert(flags.end(), more_flags.begin(), more_flags.end());
    ASSERT_NO_FATAL_FAILURE(AddNodes(1, flags));
    ASSERT_NO_FATAL_FAILURE(StartRouter(NodeAddresses()));
    // Fewer prompts at once than fit into the pool.
    replay::ReplayOptions options = SmallBlocks();
    options.workers = 4;
    options.compute_tokens_per_second = kComputeTokensPerSecond;
    replay_ = std::make_unique<StagedReplay>(options, Target(), requests_);
  }
  std::vector<std::string> Disk() const {
    return {"--disk-bytes=256MiB", "--disk-index-memory=16MiB", "--spill-block-bytes=1MiB",
            "--spill-file-age-ms=100", absl::StrCat("--disk-dir=", folder_, "/disk")};
  }

  void RunUntil(size_t count) {
    replay_->RunUntil(count);
    ASSERT_TRUE(replay_->AwaitDone(count, kReplayTakes)) << replay_->done() << " of " << count;
  }
  void Finish() {
    absl::StatusOr<replay::ReplayReport> report = replay_->Finish();
    ASSERT_TRUE(report.ok()) << report.status();
    report_ = *std::move(report);
    EXPECT_EQ(report_.requests, kRequests);
    EXPECT_EQ(report_.failed_requests, 0u);
    EXPECT_EQ(report_.wrong_bytes, 0u);
    EXPECT_EQ(report_.uncached_requests, 0u);
    std::cout << "hit " << Share(report_.hit_tokens) << " of " << Share(report_.ideal_hit_tokens)
              << ", LRU in memory " << Share(report_.lru_hit_tokens) << "; blocks from device "
              << report_.hit_blocks_device << ", from host " << report_.hit_blocks_host
              << ", from disk " << report_.hit_blocks_disk << ", stored " << report_.stored_blocks
              << "\n";
  }
  double Share(uint64_t tokens) const {
    return static_cast<double>(tokens) / static_cast<double>(report_.tokens_looked_up);
  }

  const std::string folder_;
  std::vector<replay::TraceRequest> requests_;
  std::unique_ptr<StagedReplay> replay_;
  replay::ReplayReport report_;
};

TEST_F(DeviceReplayTest, ThreeTiersHitAsAnUnlimitedCache) {
  ASSERT_NO_FATAL_FAILURE(Start("5MiB", Disk()));
  ASSERT_NO_FATAL_FAILURE(Finish());
  EXPECT_GT(Share(report_.hit_tokens), Share(report_.ideal_hit_tokens) - kHitRateLoss);
  EXPECT_GT(report_.hit_blocks_device, 0u);
  EXPECT_GT(report_.hit_blocks_host, 0u);
  EXPECT_GT(report_.hit_blocks_disk, 0u);
}

TEST_F(DeviceReplayTest, ThreeTiersHitAsAnUnlimitedCacheThoughTheNodeIsKilledHalfWay) {
  ASSERT_NO_FATAL_FAILURE(Start("5MiB", Disk()));
  RunUntil(kRequests / 2);
  // Without a pause: what was stored last may be on its way to disk.
  node(0).Kill9();
  ASSERT_NO_FATAL_FAILURE(RestartNode(0));
  ASSERT_TRUE(AwaitList(
      [](const ReplicaList& list) { return list.holders[0].state == v1::HOLDER_STATE_EXACT; }));
  ASSERT_NO_FATAL_FAILURE(Finish());
  EXPECT_GT(Share(report_.hit_tokens), Share(report_.ideal_hit_tokens) - kHitRateLoss);
  EXPECT_GT(report_.hit_blocks_device, 0u);
  EXPECT_GT(report_.hit_blocks_disk, 0u);
}

TEST_F(DeviceReplayTest, DeviceAloneHoldsWhatHostMemoryLetGo) {
  ASSERT_NO_FATAL_FAILURE(Start("8MiB", {}));
  ASSERT_NO_FATAL_FAILURE(Finish());
  EXPECT_GT(report_.hit_blocks_device, 0u);
  EXPECT_GT(Share(report_.hit_tokens), Share(report_.lru_hit_tokens) + kHitRateLoss);
}

}  // namespace
}  // namespace cairn::testing
