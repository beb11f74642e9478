// One holder's feed into a real index, on a clock that the test moves: states, streams that follow
// one another, incarnations.
#include "router/feed/holder_feed.h"

#include <gmock/gmock.h>

#include "tests/router/model_holder.h"

namespace cairn::router {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Message = ModelHolder::Message;
const Fingerprint kModel = NumberedFingerprint(1);

class HolderFeedTest : public ::testing::Test {
 protected:
  void Apply(const Message& message) {
    const absl::Status status = feed_.Apply(message, now_);
    ASSERT_TRUE(status.ok()) << status;
  }
  void ApplyAll(const std::vector<Message>& messages) {
    for (const Message& message : messages) Apply(message);
  }
  void Start(ModelHolder* node) {
    node->NewStream();
    Apply(node->Hello());
    Apply(ModelHolder::Namespace(kModel, 16));
    ApplyAll(node->Snapshots());
    Apply(node->Heartbeat());
  }
  std::vector<Message> Put(ModelHolder* node, uint32_t first, uint32_t count) {
    return node->Set(NumberedKeys(first, count), kInHost, kModel, "acme");
  }
  uint32_t MatchOf(uint32_t first, uint32_t count) {
    const ReadablePartitions partitions = {partitions_.Find(kModel, "acme"), std::nullopt};
    return blocks_.Match(NumberedKeys(first, count), partitions, {true}, nullptr)[0].blocks;
  }
  HolderState State() { return feed_.StateAt(now_); }

  PartitionTable partitions_{16};
  NamespaceDirectory namespaces_{1, 16};
  SpeculativeBlocks speculative_{{}, 1, &partitions_};
  BlockHolders blocks_{1, 1000, &partitions_};
  HolderFeed feed_{0, {}, {&blocks_, &speculative_, &namespaces_, &partitions_}};
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(HolderFeedTest, GoesFromOutOverRecoveringToExact) {
  ModelHolder node({});
  Put(&node, 0, 8);
  node.NewStream();
  EXPECT_EQ(State(), HolderState::kOut);
  Apply(node.Hello());
  EXPECT_EQ(State(), HolderState::kRecovering);
  ApplyAll(node.Snapshots());
  EXPECT_EQ(State(), HolderState::kRecovering);
  EXPECT_TRUE(feed_.SnapshotsIn());
  Apply(node.Heartbeat());
  EXPECT_EQ(State(), HolderState::kExact);
  EXPECT_EQ(MatchOf(0, 8), 8u);
}

TEST_F(HolderFeedTest, IsNotExactWhileItsDiskTierComesBackOrFailsAndIsStillMatched) {
  ModelHolder node({});
  Put(&node, 0, 8);
  node.NewStream();
  Message hello = node.Hello();
  hello.mutable_hello()->mutable_disk()->set_recovering(true);
  Apply(hello);
  ApplyAll(node.Snapshots());
  Message heartbeat = node.Heartbeat();
  v1::DiskReport* disk = heartbeat.mutable_heartbeat()->mutable_disk();
  disk->set_recovering(true);
  Apply(heartbeat);
  EXPECT_EQ(State(), HolderState::kRecovering);
  EXPECT_EQ(MatchOf(0, 8), 8u);
  disk->set_recovering(false);
  disk->set_health(v1::DISK_HEALTH_FULL);
  Apply(heartbeat);
  EXPECT_EQ(State(), HolderState::kExact);
  disk->set_health(v1::DISK_HEALTH_FAILING);
  Apply(heartbeat);
  EXPECT_EQ(State(), HolderState::kRecovering);
  Apply(node.Heartbeat());
  EXPECT_EQ(State(), HolderState::kExact);
}

TEST_F(HolderFeedTest, SilenceDegradesItAndThenTakesItOutAndAnyMessageBringsItBack) {
  ModelHolder node({});
  Start(&node);
  now_ += absl::Milliseconds(999);
  EXPECT_EQ(State(), HolderState::kExact);
  now_ += absl::Milliseconds(1);
  EXPECT_EQ(State(), HolderState::kDegraded);
  now_ += absl::Milliseconds(1000);
  EXPECT_EQ(State(), HolderState::kOut);
  ApplyAll(Put(&node, 1, 1));
  EXPECT_EQ(State(), HolderState::kExact);
}

TEST_F(HolderFeedTest, ABrokenStreamTakesItOutAtOnce) {
  ModelHolder node({});
  Start(&node);
  feed_.Broke();
  EXPECT_EQ(State(), HolderState::kOut);
  EXPECT_FALSE(feed_.SnapshotsIn());
}

TEST_F(HolderFeedTest, ASameIncarnationKeepsWhatIsHeldUntilEachShardIsReplaced) {
  ModelHolder node({});
  Start(&node);
  ApplyAll(Put(&node, 0, 8));
  feed_.Broke();
  node.Set({NumberedKey(5)}, 0, kModel, "acme");  // While nobody followed.
  node.NewStream();
  Apply(node.Hello());
  EXPECT_EQ(MatchOf(0, 8), 8u);
  ApplyAll(node.Snapshots());
  EXPECT_EQ(MatchOf(0, 8), 5u);
  Apply(node.Heartbeat());
  EXPECT_EQ(State(), HolderState::kExact);
}

TEST_F(HolderFeedTest, AnotherIncarnationForgetsAllOfTheOldAtOnce) {
  ModelHolder node({});
  Start(&node);
  ApplyAll(Put(&node, 0, 8));
  BookingId booking;
  speculative_.Mark(booking, 0, *partitions_.Find(kModel, "acme"), NumberedKeys(100, 1), now_);
  Apply(ModelHolder::Namespace(NumberedFingerprint(2), 16));
  feed_.Broke();
  ModelHolder again({.incarnation = 'j', .shards = 2});
  Apply(again.Hello());
  EXPECT_EQ(MatchOf(0, 8), 0u);
  EXPECT_EQ(blocks_.BlocksOf(0), 0u);
  EXPECT_EQ(namespaces_.BlockTokens(NumberedFingerprint(2)), std::nullopt);
  size_t marks = 0;
  speculative_.Visit(NumberedKey(100), [&](HolderIndex, PartitionIndex) { ++marks; });
  EXPECT_EQ(marks, 0u);
  ApplyAll(again.Snapshots());
  Apply(again.Heartbeat());
  EXPECT_EQ(State(), HolderState::kExact);
}

TEST_F(HolderFeedTest, AFedRecordEndsTheSpeculativeMarkOfItsKey) {
  ModelHolder node({});
  Start(&node);
  speculative_.Mark(BookingId{}, 0, *partitions_.Intern(kModel, "acme"), NumberedKeys(0, 2), now_);
  ApplyAll(Put(&node, 0, 1));
  EXPECT_EQ(speculative_.mark_count(), 1u);
}

TEST_F(HolderFeedTest, GapsAreAskedFor) {
  ModelHolder node({});
  Start(&node);
  Put(&node, 0, 1);  // Lost.
  ApplyAll(Put(&node, 4, 1));
  EXPECT_EQ(State(), HolderState::kRecovering);
  EXPECT_THAT(feed_.TakeResyncs(now_), ElementsAre(0));
  ApplyAll(node.Snapshot(0));
  Apply(node.Heartbeat());
  EXPECT_EQ(State(), HolderState::kExact);
}

TEST_F(HolderFeedTest, MessagesThatBreakTheContractEndTheStream) {
  ModelHolder node({});
  EXPECT_FALSE(feed_.Apply(node.Heartbeat(), now_).ok());
  Start(&node);
  EXPECT_THAT(feed_.Apply(node.Hello(), now_).message(), HasSubstr("second hello"));
  EXPECT_EQ(State(), HolderState::kOut);
  Start(&node);
  Message heartbeat = node.Heartbeat();
  heartbeat.mutable_heartbeat()->set_incarnation(std::string(16, 'x'));
  EXPECT_THAT(feed_.Apply(heartbeat, now_).message(), HasSubstr("another incarnation"));
  EXPECT_EQ(State(), HolderState::kOut);
}

TEST_F(HolderFeedTest, HellosThatAreNotOfThisContractAreRefused) {
  const ModelHolder node({});
  const auto refusal = [&](auto change) {
    v1::NodeInfo hello = node.Hello().hello();
    change(&hello);
    return HolderFeed::CheckHello(hello);
  };
  EXPECT_TRUE(refusal([](v1::NodeInfo*) {}).ok());
  EXPECT_FALSE(refusal([](v1::NodeInfo* hello) { hello->set_contract_version(2); }).ok());
  EXPECT_FALSE(refusal([](v1::NodeInfo* hello) { hello->set_shards(0); }).ok());
  EXPECT_FALSE(refusal([](v1::NodeInfo* hello) { hello->set_shards(257); }).ok());
  EXPECT_FALSE(refusal([](v1::NodeInfo* hello) { hello->set_incarnation("short"); }).ok());
  EXPECT_FALSE(refusal([](v1::NodeInfo* hello) { hello->set_node_id(""); }).ok());
  EXPECT_FALSE(
      refusal([](v1::NodeInfo* hello) { hello->set_worker_address(std::string(257, 'w')); }).ok());
  EXPECT_FALSE(refusal([](v1::NodeInfo* hello) {
                 for (int i = 0; i < 16; ++i) hello->add_addresses("a:1");
               }).ok());
}

TEST_F(HolderFeedTest, HeartbeatsTellLoadAndDraining) {
  ModelHolder node({});
  Start(&node);
  Message heartbeat = node.Heartbeat(v1::DRAIN_STATE_DRAINING);
  heartbeat.mutable_heartbeat()->mutable_load()->set_leases(3);
  Apply(heartbeat);
  EXPECT_EQ(feed_.node()->drain_state(), v1::DRAIN_STATE_DRAINING);
  EXPECT_EQ(feed_.load()->leases(), 3u);
}

}  // namespace
}  // namespace cairn::router
