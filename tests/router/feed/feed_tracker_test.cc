// A model node makes a feed; batches are lost, repeated and put in another order on the way. The
// sink must end with what the model holds, and a shard is asked for exactly when that cannot be
// known.
#include "router/feed/feed_tracker.h"

#include <gmock/gmock.h>

#include <map>
#include <random>

#include "tests/router/model_holder.h"

namespace cairn::router {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Message = ModelHolder::Message;
const Fingerprint kModel = NumberedFingerprint(1);
const absl::Time kStart = absl::UnixEpoch();

// Keeps the records in a map, up to `room` of them. Fake.
class MapSink final : public BlockSink {
 public:
  absl::StatusOr<uint32_t> OwnerOf(const Fingerprint&, absl::string_view) override { return 1; }
  std::optional<uint8_t> Set(uint32_t, const BlockKey& key, uint8_t tiers) override {
    const auto found = blocks.find(key);
    const uint8_t before = found == blocks.end() ? 0 : found->second;
    if (before == 0 && tiers != 0 && blocks.size() >= room) return std::nullopt;
    if (tiers == 0) {
      blocks.erase(key);
    } else {
      blocks[key] = tiers;
    }
    return before;
  }
  void ClearShard(uint32_t shard) override {
    std::erase_if(blocks, [shard](const auto& block) { return block.first.bytes[0] % 4 == shard; });
  }

  std::map<BlockKey, uint8_t> blocks;
  size_t room = SIZE_MAX;
};

class FeedTrackerTest : public ::testing::Test {
 protected:
  void Apply(const Message& message) {
    if (message.has_batch()) {
      const absl::Status status = tracker_.ApplyBatch(message.batch(), now_);
      ASSERT_TRUE(status.ok()) << status;
      return;
    }
    const absl::Status status = tracker_.ApplyDigests(message.heartbeat().shards(), now_);
    ASSERT_TRUE(status.ok()) << status;
  }
  void ApplyAll(const std::vector<Message>& messages) {
    for (const Message& message : messages) Apply(message);
  }
  std::vector<Message> Set(uint32_t key, uint8_t tiers) {
    return node_.Set({NumberedKey(key)}, tiers, kModel, "acme");
  }
  void Start() {
    ApplyAll(node_.Snapshots());
    Apply(node_.Heartbeat());
    ASSERT_TRUE(tracker_.Exact());
  }
  absl::StatusCode Refusal(const v1::BlockBatch& batch) {
    return tracker_.ApplyBatch(batch, now_).code();
  }

  ModelHolder node_{{}};
  MapSink sink_;
  FeedTracker tracker_{ResyncOptions{}, 4, &sink_};
  absl::Time now_ = kStart;
};

TEST_F(FeedTrackerTest, IsExactOnceAllShardsAreInAndTheirDigestsAgree) {
  for (uint32_t key = 0; key < 10; ++key) Set(key, kInHost);
  node_.NewStream();
  for (uint32_t shard = 0; shard < 4; ++shard) {
    EXPECT_FALSE(tracker_.AllShardsIn());
    ApplyAll(node_.Snapshot(shard));
  }
  EXPECT_TRUE(tracker_.AllShardsIn());
  EXPECT_FALSE(tracker_.Exact());
  Apply(node_.Heartbeat());
  EXPECT_TRUE(tracker_.Exact());
  EXPECT_EQ(sink_.blocks.size(), 10u);
}

TEST_F(FeedTrackerTest, AnOpenSnapshotIsNotIn) {
  for (const uint32_t key : {0, 4, 8}) Set(key, kInHost);
  node_.NewStream();
  for (const uint32_t shard : {1, 2, 3}) ApplyAll(node_.Snapshot(shard));
  const auto batches = node_.Snapshot(0);
  ASSERT_EQ(batches.size(), 3u);
  Apply(batches[0]);
  Apply(batches[1]);
  EXPECT_FALSE(tracker_.AllShardsIn());
  Apply(batches[2]);
  EXPECT_TRUE(tracker_.AllShardsIn());
}

TEST_F(FeedTrackerTest, AGapAsksAtOnceAndKeepsWhatIsThereUntilItIsReplaced) {
  Start();
  ApplyAll(Set(0, kInHost));
  Set(4, kInHost);  // Lost.
  ApplyAll(Set(8, kInHost));
  EXPECT_EQ(tracker_.gaps_seen(), 1u);
  EXPECT_FALSE(tracker_.AllShardsIn());
  EXPECT_TRUE(sink_.blocks.contains(NumberedKey(0)));
  EXPECT_TRUE(sink_.blocks.contains(NumberedKey(8)));
  EXPECT_THAT(tracker_.TakeResyncs(now_), ElementsAre(0));
  EXPECT_THAT(tracker_.TakeResyncs(now_), IsEmpty());
  ApplyAll(node_.Snapshot(0));
  EXPECT_TRUE(sink_.blocks.contains(NumberedKey(4)));
  Apply(node_.Heartbeat());
  EXPECT_TRUE(tracker_.Exact());
}

TEST_F(FeedTrackerTest, AShardThatAHeartbeatLeavesOutIsNotExactUntilItComesAnew) {
  Start();
  ApplyAll(Set(1, kInHost));
  Message heartbeat = node_.Heartbeat();
  heartbeat.mutable_heartbeat()->mutable_shards()->DeleteSubrange(1, 1);
  Apply(heartbeat);
  EXPECT_FALSE(tracker_.Exact());
  EXPECT_TRUE(tracker_.AllShardsIn());
  EXPECT_TRUE(sink_.blocks.contains(NumberedKey(1)));
  EXPECT_THAT(tracker_.TakeResyncs(now_), IsEmpty()) << "it comes without being asked for";
  ApplyAll(node_.Snapshot(1));
  Apply(node_.Heartbeat());
  EXPECT_TRUE(tracker_.Exact());
}

TEST_F(FeedTrackerTest, ALostLastBatchIsFoundByTheHeartbeatsSequence) {
  Start();
  Set(1, kInHost);  // Lost.
  Apply(node_.Heartbeat());
  EXPECT_EQ(tracker_.gaps_seen(), 1u);
  EXPECT_EQ(tracker_.digest_mismatches_seen(), 0u);
  EXPECT_THAT(tracker_.TakeResyncs(now_), ElementsAre(1));
}

TEST_F(FeedTrackerTest, ADigestThatDiffersAsksForItsShardOnly) {
  Start();
  ApplyAll(Set(2, kInHost));
  Message heartbeat = node_.Heartbeat();
  heartbeat.mutable_heartbeat()->mutable_shards(2)->mutable_tiers(1)->set_key_sum(1);
  Apply(heartbeat);
  EXPECT_EQ(tracker_.digest_mismatches_seen(), 1u);
  EXPECT_THAT(tracker_.TakeResyncs(now_), ElementsAre(2));
}

TEST_F(FeedTrackerTest, BackoffGrowsUntilADigestAgrees) {
  Start();
  const auto disagree = [&] {
    Message heartbeat = node_.Heartbeat();
    heartbeat.mutable_heartbeat()->mutable_shards(0)->mutable_tiers(0)->set_blocks(9);
    Apply(heartbeat);
  };
  disagree();
  EXPECT_THAT(tracker_.TakeResyncs(now_), ElementsAre(0));
  for (const int wait_ms : {500, 1000, 2000}) {
    ApplyAll(node_.Snapshot(0));
    disagree();
    now_ += absl::Milliseconds(wait_ms - 1);
    EXPECT_THAT(tracker_.TakeResyncs(now_), IsEmpty());
    now_ += absl::Milliseconds(1);
    EXPECT_THAT(tracker_.TakeResyncs(now_), ElementsAre(0));
  }
  ApplyAll(node_.Snapshot(0));
  Apply(node_.Heartbeat());
  EXPECT_TRUE(tracker_.Exact());
  disagree();
  EXPECT_THAT(tracker_.TakeResyncs(now_), ElementsAre(0));
}

TEST_F(FeedTrackerTest, RepeatedAndLateBatchesChangeNothing) {
  Start();
  const auto put = Set(3, kInHost);
  const auto gone = Set(3, 0);
  ApplyAll(put);
  ApplyAll(gone);
  ApplyAll(put);
  EXPECT_FALSE(sink_.blocks.contains(NumberedKey(3)));
  Apply(node_.Heartbeat());
  EXPECT_TRUE(tracker_.Exact());
}

TEST_F(FeedTrackerTest, WhatTheSinkCannotTakeIsAskedForAgainWithBackoff) {
  sink_.room = 1;
  Start();
  ApplyAll(Set(0, kInHost));
  ApplyAll(Set(4, kInHost));
  EXPECT_EQ(tracker_.records_dropped(), 1u);
  EXPECT_FALSE(tracker_.AllShardsIn());
  EXPECT_THAT(tracker_.TakeResyncs(now_), ElementsAre(0));
  sink_.room = 2;
  ApplyAll(node_.Snapshot(0));
  Apply(node_.Heartbeat());
  EXPECT_TRUE(tracker_.Exact());
}

TEST_F(FeedTrackerTest, BatchesThatBreakTheContractAreRefused) {
  Start();
  const v1::BlockBatch good = Set(1, kInHost)[0].batch();
  v1::BlockBatch bad = good;
  bad.set_shard(4);
  EXPECT_EQ(Refusal(bad), absl::StatusCode::kInvalidArgument);
  bad = good;
  bad.set_shard(2);
  EXPECT_EQ(Refusal(bad), absl::StatusCode::kInvalidArgument);
  bad = good;
  bad.mutable_keys()->pop_back();
  EXPECT_EQ(Refusal(bad), absl::StatusCode::kInvalidArgument);
  bad = good;
  bad.mutable_tier_masks()->push_back(1);
  EXPECT_EQ(Refusal(bad), absl::StatusCode::kInvalidArgument);
  bad = good;
  bad.set_reasons("12");
  EXPECT_EQ(Refusal(bad), absl::StatusCode::kInvalidArgument);
  bad = good;
  bad.set_fingerprint("short");
  EXPECT_EQ(Refusal(bad), absl::StatusCode::kInvalidArgument);
  bad = good;
  bad.set_tenant(std::string(257, 't'));
  EXPECT_EQ(Refusal(bad), absl::StatusCode::kInvalidArgument);
  v1::ShardDigest digest;
  digest.set_shard(4);
  EXPECT_FALSE(tracker_.ApplyDigest(digest, now_).ok());
  digest.set_shard(0);
  digest.add_tiers()->set_tier(static_cast<v1::Tier>(9));
  EXPECT_FALSE(tracker_.ApplyDigest(digest, now_).ok());
  EXPECT_EQ(Refusal(good), absl::StatusCode::kOk);
}

// The way of a message: at its time, lost, twice, or after the next one.
TEST_F(FeedTrackerTest, HealsWhateverIsLostRepeatedOrReordered) {
  std::mt19937 random(11);
  const auto pick = [&](uint32_t below) { return static_cast<uint32_t>(random() % below); };
  Start();
  std::vector<Message> late;
  for (int step = 0; step < 3000; ++step) {
    now_ += absl::Milliseconds(50);
    std::vector<Message> sent = Set(pick(40), static_cast<uint8_t>(pick(8)));
    if (pick(5) == 0) sent = {node_.Heartbeat()};
    for (const uint32_t shard : tracker_.TakeResyncs(now_)) {
      for (Message& message : node_.Snapshot(shard)) sent.push_back(std::move(message));
    }
    for (Message& message : sent) {
      const uint32_t way = pick(40);
      if (way == 0) continue;
      if (way == 1) Apply(message);
      if (way == 2) {
        late.push_back(std::move(message));
        continue;
      }
      Apply(message);
      ApplyAll(late);
      late.clear();
    }
  }
  EXPECT_GT(tracker_.gaps_seen(), 20u);
  for (int round = 0; round < 100 && !tracker_.Exact(); ++round) {
    now_ += absl::Seconds(30);
    Apply(node_.Heartbeat());
    for (const uint32_t shard : tracker_.TakeResyncs(now_)) ApplyAll(node_.Snapshot(shard));
  }
  EXPECT_TRUE(tracker_.Exact());
  EXPECT_EQ(sink_.blocks.size(), node_.block_count());
  for (const auto& [key, tiers] : sink_.blocks) EXPECT_EQ(tiers, node_.TiersOf(key));
}

}  // namespace
}  // namespace cairn::router
