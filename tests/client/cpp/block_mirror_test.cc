// A model node makes a feed at random (snapshots, records, lost batches, wrong digests); the mirror
// must hold what the model holds, and ask for a shard exactly when it cannot know.
#include "client/cpp/block_mirror.h"

#include <gmock/gmock.h>

#include <deque>
#include <map>
#include <random>

#include "common/identity/segment_digest.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint32_t kShards = 4;
const absl::Time kStart = absl::UnixEpoch();

BlockKey KeyOf(uint32_t number) {
  BlockKey key;
  key.bytes[0] = static_cast<uint8_t>(number);
  key.bytes[1] = static_cast<uint8_t>(number >> 8);
  return key;
}

uint32_t ShardOf(const BlockKey& key) { return key.bytes[0] % kShards; }

// A node's index and the feed that it would send. Fake: correct, in memory.
class ModelNode {
 public:
  v1::WatchBlocksResponse Hello() const {
    v1::WatchBlocksResponse message;
    message.mutable_hello()->set_contract_version(1);
    message.mutable_hello()->set_incarnation(std::string(16, 'i'));
    message.mutable_hello()->set_shards(kShards);
    return message;
  }

  // Sets a block's tiers and gives the record.
  v1::WatchBlocksResponse Set(const BlockKey& key, uint8_t tiers) {
    if (tiers == 0) {
      blocks_.erase(key);
    } else {
      blocks_[key] = tiers;
    }
    v1::WatchBlocksResponse message = NewBatch(ShardOf(key));
    AddRecord(key, tiers, message.mutable_batch());
    return message;
  }

  std::vector<v1::WatchBlocksResponse> Snapshot(uint32_t shard, size_t keys_per_batch) {
    std::vector<v1::WatchBlocksResponse> batches = {NewBatch(shard)};
    batches[0].mutable_batch()->set_replaces(true);
    for (const auto& [key, tiers] : blocks_) {
      if (ShardOf(key) != shard) continue;
      if (batches.back().batch().tier_masks().size() == keys_per_batch) {
        batches.back().mutable_batch()->set_more(true);
        batches.push_back(NewBatch(shard));
      }
      AddRecord(key, tiers, batches.back().mutable_batch());
    }
    return batches;
  }

  v1::WatchBlocksResponse Heartbeat() const {
    v1::WatchBlocksResponse message;
    message.mutable_heartbeat()->set_incarnation(std::string(16, 'i'));
    for (uint32_t shard = 0; shard < kShards; ++shard) {
      if (sequences_[shard] == 0) continue;
      v1::ShardDigest* digest = message.mutable_heartbeat()->add_shards();
      digest->set_shard(shard);
      digest->set_sequence(sequences_[shard]);
      for (int tier = 1; tier <= 3; ++tier) {
        v1::TierDigest* totals = digest->add_tiers();
        totals->set_tier(static_cast<v1::Tier>(tier));
        for (const auto& [key, tiers] : blocks_) {
          if (ShardOf(key) != shard || (tiers >> (tier - 1) & 1) == 0) continue;
          totals->set_blocks(totals->blocks() + 1);
          totals->set_key_sum(totals->key_sum() + FeedKeyDigest(key));
        }
      }
    }
    return message;
  }

  const std::map<BlockKey, uint8_t>& blocks() const { return blocks_; }

 private:
  v1::WatchBlocksResponse NewBatch(uint32_t shard) {
    v1::WatchBlocksResponse message;
    message.mutable_batch()->set_shard(shard);
    message.mutable_batch()->set_sequence(++sequences_[shard]);
    message.mutable_batch()->set_fingerprint(std::string(32, 'f'));
    message.mutable_batch()->set_tenant("public");
    return message;
  }

  static void AddRecord(const BlockKey& key, uint8_t tiers, v1::BlockBatch* batch) {
    batch->mutable_keys()->append(key.view().data(), key.view().size());
    batch->mutable_tier_masks()->push_back(static_cast<char>(tiers));
  }

  std::map<BlockKey, uint8_t> blocks_;
  std::array<uint64_t, kShards> sequences_{};
};

class BlockMirrorTest : public ::testing::Test {
 protected:
  void Apply(const v1::WatchBlocksResponse& message) {
    const absl::Status status = mirror_.Apply(message, now_);
    ASSERT_TRUE(status.ok()) << status;
  }
  void ApplyAll(const std::vector<v1::WatchBlocksResponse>& messages) {
    for (const v1::WatchBlocksResponse& message : messages) Apply(message);
  }
  void Start() {
    Apply(node_.Hello());
    for (uint32_t shard = 0; shard < kShards; ++shard) ApplyAll(node_.Snapshot(shard, 2));
  }
  void ExpectSame() {
    EXPECT_EQ(mirror_.block_count(), node_.blocks().size());
    for (const auto& [key, tiers] : node_.blocks()) EXPECT_EQ(mirror_.TiersOf(key), tiers);
  }

  ModelNode node_;
  BlockMirror mirror_{MirrorOptions{}};
  absl::Time now_ = kStart;
};

TEST_F(BlockMirrorTest, SnapshotsAndRecordsGiveWhatTheNodeHolds) {
  for (uint32_t i = 0; i < 20; ++i) node_.Set(KeyOf(i), 2);
  ModelNode fresh = node_;
  Start();
  EXPECT_TRUE(mirror_.AllShardsIn());
  Apply(node_.Set(KeyOf(3), 6));
  Apply(node_.Set(KeyOf(4), 0));
  Apply(node_.Set(KeyOf(99), 1));
  ExpectSame();
  EXPECT_EQ(mirror_.TiersOf(KeyOf(4)), 0);
  Apply(node_.Heartbeat());
  EXPECT_TRUE(mirror_.Exact());
  EXPECT_THAT(mirror_.TakeResyncs(now_), IsEmpty());
}

TEST_F(BlockMirrorTest, NothingIsExactBeforeTheFirstHeartbeat) {
  Start();
  EXPECT_TRUE(mirror_.AllShardsIn());
  EXPECT_FALSE(mirror_.Exact());
}

TEST_F(BlockMirrorTest, OwnerComesWithTheBatch) {
  Start();
  Apply(node_.Set(KeyOf(1), 2));
  ASSERT_TRUE(mirror_.OwnerOf(KeyOf(1)).has_value());
  EXPECT_EQ(mirror_.OwnerOf(KeyOf(1))->tenant, "public");
  EXPECT_EQ(mirror_.OwnerOf(KeyOf(1))->fingerprint.view(), std::string(32, 'f'));
  EXPECT_FALSE(mirror_.OwnerOf(KeyOf(2)).has_value());
}

TEST_F(BlockMirrorTest, RecordsAreIdempotent) {
  Start();
  Apply(node_.Set(KeyOf(1), 2));
  Apply(node_.Set(KeyOf(1), 2));
  Apply(node_.Set(KeyOf(2), 0));
  ExpectSame();
  Apply(node_.Heartbeat());
  EXPECT_TRUE(mirror_.Exact());
}

TEST_F(BlockMirrorTest, GapEmptiesTheShardAndAsksForIt) {
  Start();
  Apply(node_.Set(KeyOf(1), 2));
  Apply(node_.Set(KeyOf(2), 2));
  (void)node_.Set(KeyOf(1), 4);  // Lost.
  Apply(node_.Set(KeyOf(5), 2));
  EXPECT_EQ(mirror_.gaps_seen(), 1u);
  EXPECT_FALSE(mirror_.AllShardsIn());
  EXPECT_EQ(mirror_.TiersOf(KeyOf(1)), 0);
  EXPECT_EQ(mirror_.TiersOf(KeyOf(2)), 2);
  EXPECT_THAT(mirror_.TakeResyncs(now_), ElementsAre(1u));
  ApplyAll(node_.Snapshot(1, 10));
  ExpectSame();
  EXPECT_TRUE(mirror_.AllShardsIn());
}

TEST_F(BlockMirrorTest, HeartbeatShowsABatchLostAtTheEnd) {
  Start();
  (void)node_.Set(KeyOf(2), 4);  // Lost, and nothing follows.
  Apply(node_.Heartbeat());
  EXPECT_THAT(mirror_.TakeResyncs(now_), ElementsAre(2u));
}

TEST_F(BlockMirrorTest, ShardThatNeverCameIsAskedFor) {
  Apply(node_.Hello());
  for (uint32_t shard = 0; shard < 3; ++shard) ApplyAll(node_.Snapshot(shard, 2));
  (void)node_.Snapshot(3, 2);  // Lost.
  Apply(node_.Heartbeat());
  EXPECT_THAT(mirror_.TakeResyncs(now_), ElementsAre(3u));
}

TEST_F(BlockMirrorTest, DigestThatDiffersAsksForTheShard) {
  Start();
  v1::WatchBlocksResponse record = node_.Set(KeyOf(3), 2);
  record.mutable_batch()->set_tier_masks("\4");  // Another tier than the node's.
  Apply(record);
  Apply(node_.Heartbeat());
  EXPECT_EQ(mirror_.digest_mismatches_seen(), 1u);
  EXPECT_FALSE(mirror_.Exact());
  EXPECT_THAT(mirror_.TakeResyncs(now_), ElementsAre(3u));
}

TEST_F(BlockMirrorTest, DigestOfAnOlderStateSaysNothing) {
  Start();
  const v1::WatchBlocksResponse old = node_.Heartbeat();
  Apply(node_.Set(KeyOf(3), 2));
  Apply(old);
  EXPECT_THAT(mirror_.TakeResyncs(now_), IsEmpty());
}

TEST_F(BlockMirrorTest, OpenSnapshotAnswersNothingAndIsNotCompared) {
  for (uint32_t i = 0; i < 40; i += kShards) node_.Set(KeyOf(i), 2);
  Apply(node_.Hello());
  const std::vector<v1::WatchBlocksResponse> batches = node_.Snapshot(0, 4);
  ASSERT_EQ(batches.size(), 3u);
  Apply(batches[0]);
  EXPECT_EQ(mirror_.TiersOf(KeyOf(0)), 0);
  Apply(batches[1]);
  Apply(batches[2]);
  EXPECT_EQ(mirror_.TiersOf(KeyOf(0)), 2);
}

TEST_F(BlockMirrorTest, AShardThatAHeartbeatLeavesOutIsNotExact) {
  Start();
  Apply(node_.Heartbeat());
  EXPECT_TRUE(mirror_.Exact());
  v1::WatchBlocksResponse heartbeat = node_.Heartbeat();
  heartbeat.mutable_heartbeat()->mutable_shards()->DeleteSubrange(1, 1);
  Apply(heartbeat);
  EXPECT_FALSE(mirror_.Exact());
  EXPECT_TRUE(mirror_.AllShardsIn());
  Apply(node_.Heartbeat());
  EXPECT_TRUE(mirror_.Exact());
}

TEST_F(BlockMirrorTest, ResyncsBackOffUntilTheDigestAgrees) {
  Start();
  std::vector<absl::Duration> gaps;
  absl::Time last = now_;
  for (int i = 0; i < 4; ++i) {
    v1::WatchBlocksResponse record = node_.Set(KeyOf(3), static_cast<uint8_t>(1 + i % 2));
    record.mutable_batch()->set_tier_masks("\4");
    Apply(record);
    Apply(node_.Heartbeat());
    while (mirror_.TakeResyncs(now_).empty()) now_ += absl::Milliseconds(100);
    gaps.push_back(now_ - last);
    last = now_;
    ApplyAll(node_.Snapshot(3, 10));
  }
  EXPECT_THAT(gaps, ElementsAre(absl::ZeroDuration(), absl::Milliseconds(500), absl::Seconds(1),
                                absl::Seconds(2)));
  Apply(node_.Heartbeat());
  EXPECT_TRUE(mirror_.Exact());
}

TEST_F(BlockMirrorTest, ShardThatIsNotSentIsAskedForAgain) {
  Start();
  (void)node_.Set(KeyOf(2), 4);
  Apply(node_.Heartbeat());
  EXPECT_THAT(mirror_.TakeResyncs(now_), ElementsAre(2u));
  EXPECT_THAT(mirror_.TakeResyncs(now_), IsEmpty());
  EXPECT_THAT(mirror_.TakeResyncs(now_ + absl::Milliseconds(500)), ElementsAre(2u));
}

TEST_F(BlockMirrorTest, RetiredNamespaceAnswersNothing) {
  Start();
  Apply(node_.Set(KeyOf(1), 2));
  v1::WatchBlocksResponse record;
  record.mutable_namespace_record()->set_fingerprint(std::string(32, 'f'));
  record.mutable_namespace_record()->set_retired(true);
  Apply(record);
  EXPECT_EQ(mirror_.TiersOf(KeyOf(1)), 0);
  Apply(node_.Heartbeat());
  EXPECT_TRUE(mirror_.Exact());
}

TEST_F(BlockMirrorTest, WhatBreaksTheContractIsRefused) {
  EXPECT_FALSE(mirror_.Apply(node_.Heartbeat(), now_).ok()) << "before hello";
  Start();
  EXPECT_FALSE(mirror_.Apply(node_.Hello(), now_).ok()) << "second hello";
  const std::function<void(v1::BlockBatch*)> bends[] = {
      [](v1::BlockBatch* batch) { batch->set_shard(kShards); },
      [](v1::BlockBatch* batch) { batch->mutable_keys()->push_back('x'); },
      [](v1::BlockBatch* batch) { batch->mutable_tier_masks()->push_back('x'); },
      [](v1::BlockBatch* batch) { batch->set_reasons("xx"); },
      [](v1::BlockBatch* batch) { batch->set_fingerprint("short"); },
      [](v1::BlockBatch* batch) { batch->set_sequence(0); },
      [](v1::BlockBatch* batch) { batch->set_shard(0); },
      [](v1::BlockBatch* batch) { batch->set_tenant(std::string(257, 't')); },
  };
  for (size_t i = 0; i < std::size(bends); ++i) {
    v1::WatchBlocksResponse record = node_.Set(KeyOf(1), 2);
    bends[i](record.mutable_batch());
    EXPECT_FALSE(mirror_.Apply(record, now_).ok()) << i;
  }
  v1::WatchBlocksResponse heartbeat = node_.Heartbeat();
  heartbeat.mutable_heartbeat()->set_incarnation(std::string(16, 'j'));
  EXPECT_FALSE(mirror_.Apply(heartbeat, now_).ok());
}

TEST_F(BlockMirrorTest, MoreBlocksThanAllowedAreRefused) {
  BlockMirror mirror(MirrorOptions{.blocks_max = 2});
  ASSERT_TRUE(mirror.Apply(node_.Hello(), now_).ok());
  ASSERT_TRUE(mirror.Apply(node_.Snapshot(0, 10)[0], now_).ok());
  EXPECT_TRUE(mirror.Apply(node_.Set(KeyOf(0), 2), now_).ok());
  EXPECT_TRUE(mirror.Apply(node_.Set(KeyOf(4), 2), now_).ok());
  EXPECT_EQ(mirror.Apply(node_.Set(KeyOf(8), 2), now_).code(),
            absl::StatusCode::kResourceExhausted);
}

// Every step: change a block (its record perhaps lost), or a heartbeat; what is asked for is sent.
void RunRandomFeed(uint64_t seed) {
  std::mt19937_64 random(seed);
  ModelNode node;
  BlockMirror mirror{MirrorOptions{}};
  absl::Time now = kStart;
  ASSERT_TRUE(mirror.Apply(node.Hello(), now).ok());
  const auto send = [&](const std::vector<v1::WatchBlocksResponse>& messages, uint64_t lost_in) {
    for (const v1::WatchBlocksResponse& message : messages) {
      if (lost_in != 0 && random() % lost_in == 0) continue;
      ASSERT_TRUE(mirror.Apply(message, now).ok());
    }
  };
  for (uint32_t shard = 0; shard < kShards; ++shard) send(node.Snapshot(shard, 3), 0);
  for (int step = 0; step < 300; ++step) {
    now += absl::Milliseconds(100);
    if (random() % 5 != 0) {
      send({node.Set(KeyOf(random() % 64), static_cast<uint8_t>(random() % 8))}, 20);
    } else {
      send({node.Heartbeat()}, 0);
    }
    for (const uint32_t shard : mirror.TakeResyncs(now)) send(node.Snapshot(shard, 3), 10);
  }
  // A quiet end: within the longest backoff everything agrees.
  for (int i = 0; i < 700 && (i == 0 || !mirror.Exact()); ++i) {
    now += absl::Milliseconds(100);
    send({node.Heartbeat()}, 0);
    for (const uint32_t shard : mirror.TakeResyncs(now)) send(node.Snapshot(shard, 3), 0);
  }
  ASSERT_TRUE(mirror.Exact());
  ASSERT_EQ(mirror.block_count(), node.blocks().size());
  for (uint32_t i = 0; i < 64; ++i) {
    const auto found = node.blocks().find(KeyOf(i));
    ASSERT_EQ(mirror.TiersOf(KeyOf(i)), found == node.blocks().end() ? 0 : found->second);
  }
}

TEST(BlockMirrorRandomTest, LossyFeedsEndEqualToTheNode) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    RunRandomFeed(seed);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace cairn
