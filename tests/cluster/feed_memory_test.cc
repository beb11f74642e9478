// What watchers that stop reading cost the node's resident memory, after it has come to rest.
#include <iostream>
#include <memory>
#include <vector>

#include "tests/cluster/feed_fixture.h"

namespace cairn::testing {
namespace {

constexpr size_t kStuck = 8;
// The queues of all of them, 8 * 8192 records of 160 bytes, and half as much again for what gRPC
// holds of each.
constexpr uint64_t kGrowthMax = uint64_t{16} << 20;

using FeedMemoryTest = FeedTest;

TEST_F(FeedMemoryTest, WatchersThatStopReadingCostNoMoreThanTheirQueues) {
  // Nothing else of the node grows with the churn for long.
  ASSERT_NO_FATAL_FAILURE(Start({"--feed-queue-records=8192", "--removed-remembered=1024",
                                 "--request-memory=1MiB", "--token-ttl-ms=1000"}));
  Churn(1, 1500);
  std::vector<std::unique_ptr<StuckWatcher>> stuck;
  for (size_t i = 0; i < kStuck; ++i) {
    stuck.push_back(std::make_unique<StuckWatcher>(node().address()));
  }
  ASSERT_FALSE(HasFailure());
  const uint64_t before = node().process().RssBytes();
  Churn(2, 2000);
  const uint64_t after = node().process().RssBytes();
  std::cout << "resident before " << before << ", after " << after << " bytes\n";
  EXPECT_LT(after, before + kGrowthMax);
  for (const auto& watcher : stuck) {
    EXPECT_TRUE(watcher->Read().ok());
  }
}

}  // namespace
}  // namespace cairn::testing
