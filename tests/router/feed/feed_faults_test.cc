// Three holders feed one index; each kind of fault hits one of them while its node goes on
// changing. What it has must come to be its node's listing again, by what it asks for alone, and at
// no time may another holder have less or more than its own.
#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "router/feed/holder_feed.h"
#include "tests/router/model_holder.h"

namespace cairn::router {
namespace {

using Message = ModelHolder::Message;

constexpr size_t kHolders = 3;
constexpr size_t kHit = 1;  // Whom the faults hit.
constexpr uint32_t kKeys = 60;
constexpr uint32_t kShards = 4;
const Fingerprint kModel = NumberedFingerprint(1);

class FeedFaultsTest : public ::testing::Test {
 protected:
  FeedFaultsTest() {
    for (size_t i = 0; i < kHolders; ++i) {
      NewNode(i, 'i');
      feeds_.push_back(std::make_unique<HolderFeed>(
          static_cast<HolderIndex>(i), FeedOptions{},
          FeedTargets{&blocks_, &speculative_, &namespaces_, &partitions_}));
      Connect(i);
      Change(i, 40);
      Beat(i);
    }
    others_settled_ = true;
  }

  void NewNode(size_t holder, char incarnation) {
    nodes_.resize(std::max(nodes_.size(), holder + 1));
    nodes_[holder] = std::make_unique<ModelHolder>(
        ModelHolder::Identity{.node_id = "node-" + std::to_string(holder),
                              .incarnation = incarnation,
                              .shards = kShards});
  }
  void Send(size_t holder, const Message& message) {
    const absl::Status status = feeds_[holder]->Apply(message, now_);
    ASSERT_TRUE(status.ok()) << status;
    ExpectOthersWhole();
  }
  void SendAll(size_t holder, const std::vector<Message>& messages) {
    for (const Message& message : messages) Send(holder, message);
  }
  void Hello(size_t holder) {
    nodes_[holder]->NewStream();
    Send(holder, nodes_[holder]->Hello());
    Send(holder, ModelHolder::Namespace(kModel, 16));
  }
  void Connect(size_t holder) {
    Hello(holder);
    SendAll(holder, nodes_[holder]->Snapshots());
  }
  // Blocks that come, change their tier, and go; the records of each, in order.
  std::vector<Message> Changes(size_t holder, int count) {
    std::vector<Message> messages;
    for (int i = 0; i < count; ++i) {
      const auto tiers = static_cast<uint8_t>(random_() % 3 == 0 ? 0 : 1 + random_() % 7);
      const BlockKey key = NumberedKey(static_cast<uint32_t>(random_() % kKeys));
      for (Message& message : nodes_[holder]->Set({key}, tiers, kModel, "acme")) {
        messages.push_back(std::move(message));
      }
    }
    return messages;
  }
  void Change(size_t holder, int count) { SendAll(holder, Changes(holder, count)); }
  void Beat(size_t holder) { Send(holder, nodes_[holder]->Heartbeat()); }

  // Beats, and sends what is asked for, until nothing is; then the index has the node's listing.
  void ExpectHeals() {
    for (int round = 0; round < 20; ++round) {
      now_ += absl::Milliseconds(500);
      for (size_t i = 0; i < kHolders; ++i) Beat(i);
      for (const uint32_t shard : feeds_[kHit]->TakeResyncs(now_)) {
        SendAll(kHit, nodes_[kHit]->Snapshot(shard));
      }
    }
    EXPECT_EQ(feeds_[kHit]->StateAt(now_), HolderState::kExact);
    ExpectListing(kHit);
  }
  void ExpectListing(size_t holder) {
    const PartitionIndex partition = *partitions_.Find(kModel, "acme");
    ASSERT_EQ(blocks_.BlocksOf(static_cast<HolderIndex>(holder)), nodes_[holder]->block_count());
    for (uint32_t i = 0; i < kKeys; ++i) {
      const BlockKey key = NumberedKey(i);
      const auto matches = blocks_.Match({&key, 1}, {partition, std::nullopt},
                                         std::vector<bool>(kHolders, true), nullptr);
      ASSERT_EQ(matches[holder].blocks, nodes_[holder]->TiersOf(key) != 0 ? 1u : 0u) << i;
    }
  }
  void ExpectOthersWhole() {
    if (!others_settled_) return;
    for (const size_t other : {size_t{0}, size_t{2}}) {
      EXPECT_NE(feeds_[other]->StateAt(now_), HolderState::kOut);
      ExpectListing(other);
    }
  }

  std::mt19937 random_{5};
  bool others_settled_ = false;  // Set once all are connected.
  PartitionTable partitions_{16};
  NamespaceDirectory namespaces_{kHolders, 16};
  SpeculativeBlocks speculative_{{}, kHolders, &partitions_};
  BlockHolders blocks_{kHolders, 1000, &partitions_};
  std::vector<std::unique_ptr<ModelHolder>> nodes_;
  std::vector<std::unique_ptr<HolderFeed>> feeds_;
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(FeedFaultsTest, Dropped) {
  for (const Message& message : Changes(kHit, 100)) {
    if (random_() % 4 != 0) Send(kHit, message);
  }
  ExpectHeals();
}

TEST_F(FeedFaultsTest, Duplicated) {
  for (const Message& message : Changes(kHit, 100)) {
    for (uint64_t times = 1 + random_() % 3; times > 0; --times) Send(kHit, message);
  }
  ExpectListing(kHit);  // Nothing had to be asked for.
  EXPECT_TRUE(feeds_[kHit]->TakeResyncs(now_).empty());
  ExpectHeals();
}

TEST_F(FeedFaultsTest, Reordered) {
  std::vector<Message> messages = Changes(kHit, 100);
  for (size_t i = 0; i + 5 <= messages.size(); i += 5) {
    std::shuffle(messages.begin() + static_cast<ptrdiff_t>(i),
                 messages.begin() + static_cast<ptrdiff_t>(i + 5), random_);
  }
  SendAll(kHit, messages);
  ExpectHeals();
}

TEST_F(FeedFaultsTest, Stalled) {
  const std::vector<Message> late = Changes(kHit, 50);
  for (int i = 0; i < 6; ++i) {
    now_ += absl::Milliseconds(500);
    for (const size_t other : {size_t{0}, size_t{2}}) Beat(other);
  }
  EXPECT_EQ(feeds_[kHit]->StateAt(now_), HolderState::kOut);
  SendAll(kHit, late);
  EXPECT_NE(feeds_[kHit]->StateAt(now_), HolderState::kOut);
  ExpectHeals();
}

TEST_F(FeedFaultsTest, RestartedWithOtherBlocks) {
  feeds_[kHit]->Broke();
  NewNode(kHit, 'j');
  Hello(kHit);
  EXPECT_EQ(blocks_.BlocksOf(kHit), 0u);
  SendAll(kHit, nodes_[kHit]->Snapshots());
  Change(kHit, 20);
  ExpectHeals();
}

TEST_F(FeedFaultsTest, CutMidSnapshotAgainAndAgain) {
  for (size_t sent = 0; sent < 12; ++sent) {
    feeds_[kHit]->Broke();
    Changes(kHit, 10);  // While nobody follows.
    Hello(kHit);
    const std::vector<Message> snapshots = nodes_[kHit]->Snapshots();
    for (size_t i = 0; i < std::min(sent, snapshots.size()); ++i) Send(kHit, snapshots[i]);
    EXPECT_FALSE(feeds_[kHit]->SnapshotsIn());
  }
  feeds_[kHit]->Broke();
  Connect(kHit);
  ExpectHeals();
}

TEST_F(FeedFaultsTest, DigestsThatDiffer) {
  // Records that say another tier than the node has: only the digests can tell.
  for (Message& message : Changes(kHit, 60)) {
    std::string* const masks = message.mutable_batch()->mutable_tier_masks();
    if (random_() % 4 == 0) masks->front() = static_cast<char>(masks->front() ^ 4);
    Send(kHit, message);
  }
  Beat(kHit);
  EXPECT_EQ(feeds_[kHit]->StateAt(now_), HolderState::kRecovering);
  ExpectHeals();
}

TEST_F(FeedFaultsTest, ForgottenBetweenThePiecesOfABatch) {
  const std::vector<Message> batches =
      nodes_[kHit]->Set(NumberedKeys(0, kKeys), kInHost, kModel, "acme");
  size_t taken = 0;
  ASSERT_EQ(*feeds_[kHit]->ApplyPiece(batches[0], 4, &taken, now_), false);
  EXPECT_EQ(taken, 4u);
  EXPECT_FALSE(feeds_[kHit]->SnapshotsIn());
  feeds_[kHit]->Forget();
  EXPECT_EQ(feeds_[kHit]->ApplyPiece(batches[0], 4, &taken, now_).status().code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(blocks_.BlocksOf(kHit), 0u);
  Connect(kHit);
  ExpectHeals();
}

TEST_F(FeedFaultsTest, APieceAtATimeIsAsTheWhole) {
  for (const Message& batch : nodes_[kHit]->Set(NumberedKeys(0, kKeys), kInHost, kModel, "acme")) {
    size_t taken = 0;
    size_t pieces = 1;
    while (!*feeds_[kHit]->ApplyPiece(batch, 4, &taken, now_)) ++pieces;
    EXPECT_EQ(pieces, 4u);  // 15 keys a shard.
  }
  ExpectListing(kHit);
  ExpectHeals();
}

}  // namespace
}  // namespace cairn::router
