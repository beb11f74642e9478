// The router is killed while a replay runs, and started again: workers go on with the replicas that
// they know, and the new router is not ready before its index is what the nodes say that they hold.
#include <algorithm>
#include <iostream>

#include "absl/time/clock.h"
#include "tests/cluster/cluster_fixture.h"
#include "tests/cluster/feed_proxy.h"
#include "tests/cluster/staged_replay.h"

namespace cairn::testing {
namespace {

constexpr size_t kNodes = 3;
constexpr size_t kPart = 300;  // Requests.
constexpr double kHitRateLoss = 0.02;

class RouterRestartTest : public ClusterTest {
 protected:
  // Parts of the replay: old requests twice, new ones (during which the router dies and returns),
  // old ones again.
  void Start() {
    ASSERT_NO_FATAL_FAILURE(AddNodes(kNodes));
    std::vector<std::string> feeds;
    for (const std::string& address : NodeAddresses()) {
      proxies_.push_back(std::make_unique<FeedProxy>(address));
      feeds.push_back(proxies_.back()->address());
    }
    ASSERT_NO_FATAL_FAILURE(StartRouter(feeds));
    old_ = Generate(1, kPart);
    new_ = Generate(2, kPart);
    std::vector<replay::TraceRequest> requests;
    for (const auto* part : {&old_, &old_, &new_, &old_}) {
      requests.insert(requests.end(), part->begin(), part->end());
    }
    replay_ = std::make_unique<StagedReplay>(SmallBlocks(), Target(), requests);
  }

  void RunUntil(size_t count) {
    replay_->RunUntil(count);
    ASSERT_TRUE(replay_->AwaitDone(count, kSoon)) << replay_->done() << " of " << count;
  }

  // While one node's feed says nothing.
  void ExpectNotReadyWithoutOneFeed() {
    FeedProxy& held = *proxies_.back();
    held.Hold(true);
    ASSERT_NO_FATAL_FAILURE(RestartRouter());
    ASSERT_TRUE(AwaitList([](const ReplicaList& list) {
      return list.holders[0].state == v1::HOLDER_STATE_EXACT &&
             list.holders[1].state == v1::HOLDER_STATE_EXACT;
    }));
    EXPECT_FALSE(List().ready);
    EXPECT_FALSE(router().IsReady());
    held.Hold(false);
  }

  // In the very answer that first says so.
  void ExpectAllBlocksWhenReady() {
    ReplicaList first;
    ASSERT_TRUE(AwaitList([&](const ReplicaList& list) {
      first = list;
      return list.ready;
    }));
    for (size_t i = 0; i < kNodes; ++i) {
      const v1::DescribeResponse node = Describe(i);
      EXPECT_GT(node.blocks(), 0u);
      EXPECT_EQ(ReplicaOf(first, node.node().node_id()).blocks, node.blocks()) << i;
    }
    EXPECT_TRUE(router().AwaitReady(absl::Now() + kSoon).ok());
  }

  std::vector<std::unique_ptr<FeedProxy>> proxies_;
  std::vector<replay::TraceRequest> old_;
  std::vector<replay::TraceRequest> new_;
  std::unique_ptr<StagedReplay> replay_;
};

TEST_F(RouterRestartTest, AReplayLosesNothingAndTheRouterIsReadyWhenItKnowsAll) {
  ASSERT_NO_FATAL_FAILURE(Start());
  RunUntil(kPart);
  RunUntil(2 * kPart);
  const double before = replay_->HitRateSince(kPart);
  EXPECT_GT(before, 0.9);

  // Dies while its requests are under way.
  const size_t outage_begin = 2 * kPart + kPart / 6;
  replay_->RunUntil(outage_begin + kPart / 6);
  ASSERT_TRUE(replay_->AwaitDone(outage_begin, kSoon));
  router().Kill9();
  RunUntil(outage_begin + kPart / 6);
  const double without = replay_->HitRateSince(outage_begin);
  // Those that were routed before the kill may end last: they wait for their report.
  const std::vector<WorkOutcome> outage = replay_->OutcomesSince(outage_begin);
  EXPECT_TRUE(std::any_of(outage.begin(), outage.end(),
                          [](const WorkOutcome& outcome) { return !outcome.routed; }));
  EXPECT_TRUE(std::all_of(outage.begin(), outage.end(),
                          [](const WorkOutcome& outcome) { return outcome.cached; }));

  // Nothing runs, so what the nodes hold stays as it is.
  ASSERT_NO_FATAL_FAILURE(ExpectNotReadyWithoutOneFeed());
  ASSERT_NO_FATAL_FAILURE(ExpectAllBlocksWhenReady());
  ExpectIndexIsListing(old_);
  ExpectIndexIsListing(absl::MakeConstSpan(new_).first(kPart / 3));

  RunUntil(3 * kPart);
  RunUntil(4 * kPart);
  EXPECT_TRUE(replay_->OutcomesSince(0).back().routed);
  const double after = replay_->HitRateSince(3 * kPart);
  EXPECT_GT(after, before - kHitRateLoss);
  std::cout << "hit rate " << before << " before, " << without << " for new requests without a "
            << "router, " << after << " after\n";
  const absl::StatusOr<replay::ReplayReport> report = replay_->Finish();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->requests, 4 * kPart);
  EXPECT_EQ(report->failed_requests, 0u);
  EXPECT_EQ(report->wrong_bytes, 0u);
  EXPECT_EQ(report->uncached_requests, 0u);
}

}  // namespace
}  // namespace cairn::testing
