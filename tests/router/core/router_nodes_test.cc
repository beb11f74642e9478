// Stories of nodes: feeds that break, fall silent and come back, and when the router is ready.
#include <gmock/gmock.h>

#include "tests/router/core/router_fixture.h"

namespace cairn::router {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using RouterNodesTest = RouterFixture;

TEST_F(RouterNodesTest, ADeadNodeIsOutOfTheFirstPlacesWithinTwoSecondsAndStaysListed) {
  Start();
  Put(0, 0, 10);
  Put(1, 0, 4);
  EXPECT_EQ(FirstNode(Route(0, 10)), "node-0");
  Pass(absl::Milliseconds(1500), {1, 2});
  EXPECT_EQ(core_->StateOf(0), HolderState::kDegraded);
  EXPECT_EQ(FirstNode(Route(0, 10)), "node-0");
  Pass(absl::Milliseconds(500), {1, 2});
  EXPECT_EQ(core_->StateOf(0), HolderState::kOut);
  const RouteAnswer answer = Route(0, 10);
  EXPECT_EQ(FirstNode(answer), "node-1");
  EXPECT_EQ(answer.replicas[2].node_id, "node-0");
  EXPECT_EQ(answer.replicas[2].matched.total(), 0u);
  EXPECT_EQ(answer.replicas[2].reason, RouteReason::kHolderOut);
  EXPECT_FALSE(answer.degraded);
}

TEST_F(RouterNodesTest, ABrokenStreamTakesANodeOutAtOnce) {
  Start();
  Put(0, 0, 10);
  core_->OnFeedBroken(0);
  EXPECT_NE(FirstNode(Route(0, 10)), "node-0");
  EXPECT_THAT(core_->LookupPrefix("acme", kModel, NumberedKeys(0, 10)).holders, IsEmpty());
}

TEST_F(RouterNodesTest, WithNoHolderInTheLastKnownReplicasAreRankedByBookings) {
  Start();
  const RouteAnswer before = Route(0, 20);
  for (HolderIndex holder = 0; holder < 3; ++holder) core_->OnFeedBroken(holder);
  const RouteAnswer answer = Route(0, 20);
  EXPECT_TRUE(answer.degraded);
  ASSERT_THAT(answer.replicas, SizeIs(3));
  EXPECT_EQ(answer.replicas[2].worker_address, before.replicas[0].worker_address);
}

TEST_F(RouterNodesTest, ANewIncarnationStartsEmptyAndComesBack) {
  Start();
  Put(0, 0, 10);
  core_->OnFeedBroken(0);
  nodes_[0] = NodeAt(0, 'j');
  Connect(0);
  EXPECT_EQ(core_->StateOf(0), HolderState::kExact);
  EXPECT_EQ(Route(0, 10).replicas[0].matched.fed[kHostTier], 0u);
  Put(0, 50, 10);
  EXPECT_EQ(FirstNode(Route(50, 10)), "node-0");
}

TEST_F(RouterNodesTest, AProcessThatWasStoppedDoesNotTakeItsHoldersForSilent) {
  Start();
  clock_.Advance(absl::Seconds(30));
  EXPECT_EQ(core_->StateOf(0), HolderState::kExact);
  core_->Tick();
  EXPECT_EQ(core_->StateOf(0), HolderState::kExact);
}

TEST_F(RouterNodesTest, ASecondNodeOfTheSameIdIsRefusedWhileTheFirstLives) {
  Start();
  core_->OnFeedBroken(2);
  nodes_[2] = ModelHolder({.node_id = "node-0", .worker_address = "worker-9", .incarnation = 'z'});
  const auto refused = core_->OnFeed(2, nodes_[2].Hello());
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.status().message(),
              AllOf(HasSubstr("10.0.0.0:7000"), HasSubstr("10.0.0.2:7000")));
  core_->OnFeedBroken(2);
  for (const ReplicaStatus& replica : core_->ListReplicas()) {
    if (replica.node_id != "node-0") continue;
    EXPECT_THAT(replica.conflict, HasSubstr("10.0.0.2:7000"));
  }
  Put(0, 0, 10);
  Pass(absl::Seconds(1), {1});
  Connect(2);
  EXPECT_EQ(core_->StateOf(0), HolderState::kOut);
  EXPECT_EQ(Route(0, 10).replicas[0].matched.fed[kHostTier], 0u);
  EXPECT_THAT(core_->ListReplicas(), SizeIs(2));
}

TEST_F(RouterNodesTest, AWorkerThatTwoNodesNameStaysInWhenOneOfThemDies) {
  Start();
  core_->OnFeedBroken(1);
  nodes_[1] = ModelHolder({.node_id = "node-1", .worker_address = "worker-0", .shards = 4});
  Connect(1);
  Put(1, 0, 10);
  EXPECT_EQ(Route(0, 10).replicas[0].matched.fed[kHostTier], 0u) << "it is beside node-0";
  core_->OnFeedBroken(0);
  Pass(absl::Milliseconds(100), {1, 2});
  const RouteAnswer answer = Route(0, 10);
  EXPECT_EQ(answer.replicas[0].worker_address, "worker-0");
  EXPECT_EQ(FirstNode(answer), "node-1");
  EXPECT_EQ(answer.replicas[0].reason, RouteReason::kPrefix);
  for (const ReplicaStatus& replica : core_->ListReplicas()) EXPECT_THAT(replica.conflict, "");
}

TEST_F(RouterNodesTest, ADrainingNodesReplicaComesLast) {
  Start();
  Put(0, 0, 10);
  Feed(0, {nodes_[0].Heartbeat(v1::DRAIN_STATE_DRAINING)});
  const RouteAnswer answer = Route(0, 10);
  EXPECT_EQ(answer.replicas[2].node_id, "node-0");
  EXPECT_EQ(answer.replicas[2].matched.total(), 0u);
  EXPECT_EQ(answer.replicas[2].reason, RouteReason::kHolderOut);
}

TEST_F(RouterNodesTest, ADrainThatWasCancelledBringsItsReplicaBack) {
  Start();
  Put(0, 0, 10);
  Feed(0, {nodes_[0].Heartbeat(v1::DRAIN_STATE_DRAINING)});
  EXPECT_NE(FirstNode(Route(0, 10)), "node-0");
  Feed(0, {nodes_[0].Heartbeat(v1::DRAIN_STATE_SERVING)});
  EXPECT_EQ(FirstNode(Route(0, 10)), "node-0");
}

TEST_F(RouterNodesTest, AnIdleNodeThatOnlyBeatsStaysExact) {
  Start();
  Put(0, 0, 10);
  Pass(absl::Minutes(1), {0, 1, 2});
  EXPECT_EQ(core_->StateOf(0), HolderState::kExact);
  EXPECT_EQ(FirstNode(Route(0, 10)), "node-0");
}

TEST_F(RouterNodesTest, ReadyOnceTheSnapshotsOfReachableHoldersAreIn) {
  Make();
  EXPECT_FALSE(core_->Ready());
  Connect(0);
  EXPECT_FALSE(core_->Ready());
  core_->OnFeedBroken(1);
  Feed(2, {nodes_[2].Hello()});
  EXPECT_FALSE(core_->Ready());
  Feed(2, nodes_[2].Snapshots());
  EXPECT_TRUE(core_->Ready());
  core_->OnFeedBroken(0);
  EXPECT_TRUE(core_->Ready());
}

TEST_F(RouterNodesTest, ReadyAfterABoundedWaitWhateverIsMissing) {
  Make();
  Pass(options_.ready_wait - absl::Milliseconds(100), {});
  EXPECT_FALSE(core_->Ready());
  Pass(absl::Milliseconds(100), {});
  EXPECT_TRUE(core_->Ready());
}

TEST_F(RouterNodesTest, ARetiredNamespaceIsMatchedNoMore) {
  Start();
  Put(0, 0, 10);
  Feed(0, {ModelHolder::Namespace(kModel, kBlockTokens, /*retired=*/true)});
  EXPECT_EQ(Route(0, 10).replicas[0].matched.fed[kHostTier], 0u);
}

}  // namespace
}  // namespace cairn::router
