// An hour of churn in seconds: thousands of tiny blocks put, evicted, deleted and cleared, while
// watchers of every kind follow; at the end their mirrors are compared with the node's own digests.
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "tests/cluster/feed_fixture.h"

namespace cairn::testing {
namespace {

TEST_F(FeedTest, MirrorsAgreeWithTheNodesDigestsAfterChurn) {
  ASSERT_NO_FATAL_FAILURE(Start({}));
  MirrorReader from_start(**client_);
  MirrorReader resyncing(**client_);
  std::vector<std::thread> churners;
  for (uint64_t seed = 0; seed < 2; ++seed) {
    churners.emplace_back([this, seed] { Churn(seed, 600); });
  }
  Churn(10, 200);
  MirrorReader from_middle(**client_);
  for (uint32_t shard = 0; shard < 64; ++shard) {
    resyncing.Resync({shard});
    Churn(20 + shard, 5);
  }
  for (std::thread& thread : churners) thread.join();
  EXPECT_GT(Describe().blocks(), 0u);
  ExpectAgreement(from_start, "from the start");
  ExpectAgreement(resyncing, "that resyncs");
  ExpectAgreement(from_middle, "from the middle");
}

TEST_F(FeedTest, AWatcherThatStopsReadingIsNotCutAndTheOthersDoNotNotice) {
  ASSERT_NO_FATAL_FAILURE(Start({"--feed-queue-records=8192"}));
  MirrorReader other(**client_);
  Churn(1, 300);
  StuckWatcher stuck(node().address());
  ASSERT_FALSE(HasFailure());
  Churn(2, 1000);
  EXPECT_TRUE(stuck.Read().ok());
  ExpectAgreement(other, "the other watcher");
  MirrorReader again(**client_);
  ExpectAgreement(again, "one that begins again");
}

TEST_F(FeedTest, AWatcherWhoseMessagesDoNotLeaveIsCutThoughItsQueueHasRoom) {
  ASSERT_NO_FATAL_FAILURE(
      Start({"--feed-queue-records=32768", "--feed-stall-ms=300", "--local-socket="}));
  MirrorReader other(**client_);
  StuckWatcher stuck(node().address());
  ASSERT_FALSE(HasFailure());
  // Longer than the node puts up with it.
  const absl::Time end = absl::Now() + absl::Milliseconds(1500);
  for (uint64_t seed = 1; absl::Now() < end; ++seed) Churn(seed, 100);
  EXPECT_FALSE(stuck.End().ok());
  ExpectAgreement(other, "the other watcher");
}

}  // namespace
}  // namespace cairn::testing
