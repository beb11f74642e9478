// A replay while the feeds between the nodes and the router lose, repeat and swap their batches and
// are cut: wrong places are misses and nothing worse, and afterwards the index is exact again.
#include <random>

#include "absl/strings/str_cat.h"
#include "tests/cluster/cluster_fixture.h"
#include "tests/cluster/feed_proxy.h"
#include "tests/cluster/staged_replay.h"

namespace cairn::testing {
namespace {

constexpr size_t kNodes = 3;
constexpr size_t kRequests = 600;
// Of a thousand batches, each so many.
constexpr uint64_t kFaultsPerThousand = 100;

// Drops, doubles or swaps batches by chance. For one proxy: not thread-safe.
FeedProxy::Judge ByChance(uint64_t seed) {
  return [random = std::mt19937_64(seed)](const v1::BlockBatch&) mutable {
    const uint64_t dice = random() % 1000;
    if (dice < kFaultsPerThousand) return BatchFate::kDrop;
    if (dice < 2 * kFaultsPerThousand) return BatchFate::kTwice;
    if (dice < 3 * kFaultsPerThousand) return BatchFate::kSwap;
    return BatchFate::kPass;
  };
}

class FeedFaultsTest : public ClusterTest {
 protected:
  void Start() {
    // Small pools, so that blocks also go.
    ASSERT_NO_FATAL_FAILURE(AddNodes(kNodes, {"--host-memory=4MiB"}));
    std::vector<std::string> feeds;
    for (const std::string& address : NodeAddresses()) {
      proxies_.push_back(std::make_unique<FeedProxy>(address));
      feeds.push_back(proxies_.back()->address());
    }
    ASSERT_NO_FATAL_FAILURE(StartRouter(feeds));
    requests_ = Generate(1, kRequests);
    replay_ = std::make_unique<StagedReplay>(SmallBlocks(), Target(), requests_);
  }

  void RunUntil(size_t count) {
    replay_->RunUntil(count);
    ASSERT_TRUE(replay_->AwaitDone(count, kSoon)) << replay_->done() << " of " << count;
  }

  std::vector<std::unique_ptr<FeedProxy>> proxies_;
  std::vector<replay::TraceRequest> requests_;
  std::unique_ptr<StagedReplay> replay_;
};

TEST_F(FeedFaultsTest, AReplayLosesNothingAndTheIndexBecomesExactAgain) {
  ASSERT_NO_FATAL_FAILURE(Start());
  for (size_t i = 0; i < kNodes; ++i) proxies_[i]->SetJudge(ByChance(i));
  for (size_t cut = 1; cut <= kNodes; ++cut) {
    RunUntil(cut * kRequests / (kNodes + 1));
    proxies_[cut - 1]->Cut();
  }
  const absl::StatusOr<replay::ReplayReport> report = replay_->Finish();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->requests, kRequests);
  EXPECT_EQ(report->failed_requests, 0u);
  EXPECT_EQ(report->wrong_bytes, 0u);
  EXPECT_GT(report->hit_blocks, 0u);

  for (const auto& proxy : proxies_) proxy->SetJudge(nullptr);
  ASSERT_TRUE(AwaitExact());
  ExpectIndexIsListing(requests_);
  for (const auto& proxy : proxies_) {
    const FeedProxy::Counts counts = proxy->counts();
    EXPECT_EQ(counts.feeds, 2u);
    EXPECT_GT(counts.dropped, 0u);
    EXPECT_GT(counts.doubled, 0u);
    EXPECT_GT(counts.swapped, 0u);
    EXPECT_GT(counts.shards_asked_again, 0u);
  }
}

TEST_F(FeedFaultsTest, AFeedWhoseLastBatchIsLostIsExactAgainByItsHeartbeat) {
  ASSERT_NO_FATAL_FAILURE(Start());
  RunUntil(kRequests / 2);
  ASSERT_TRUE(AwaitExact());
  for (const auto& proxy : proxies_) {
    proxy->SetJudge([](const v1::BlockBatch&) { return BatchFate::kDrop; });
  }
  RunUntil(kRequests / 2 + 50);
  for (const auto& proxy : proxies_) proxy->SetJudge(nullptr);
  ASSERT_TRUE(AwaitExact());
  ExpectIndexIsListing(absl::MakeConstSpan(requests_).first(kRequests / 2 + 50));
  for (const auto& proxy : proxies_) EXPECT_EQ(proxy->counts().feeds, 1u);
  const absl::StatusOr<replay::ReplayReport> report = replay_->Finish();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->failed_requests, 0u);
  EXPECT_EQ(report->wrong_bytes, 0u);
}

}  // namespace
}  // namespace cairn::testing
