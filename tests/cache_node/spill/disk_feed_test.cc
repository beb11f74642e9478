// What watchers are told of two tiers: a watcher believes its messages, and its picture and digests
// are compared with what the store says of itself.
#include <gmock/gmock.h>

#include <map>

#include "common/identity/segment_digest.h"
#include "tests/cache_node/spill/disk_world.h"

namespace cairn::node {
namespace {

using Picture = std::map<BlockKey, uint8_t>;

class Watcher {
 public:
  explicit Watcher(DiskWorld* world) : world_(world), id_(world->store().AddWatcher()) {}

  void Pull() {
    world_->store().QueueHeartbeat(id_);
    while (true) {
      const FeedMessage message = world_->store().NextFeedMessage(id_);
      if (std::holds_alternative<FeedIdle>(message)) return;
      ASSERT_FALSE(std::holds_alternative<FeedCut>(message));
      if (const auto* batch = std::get_if<FeedBatch>(&message)) Take(*batch);
      if (const auto* beat = std::get_if<FeedHeartbeat>(&message)) Check(*beat);
    }
  }
  uint8_t TiersOf(const BlockKey& key) {
    for (const auto& [shard, picture] : shards_) {
      if (auto it = picture.find(key); it != picture.end()) return it->second;
    }
    return 0;
  }
  RemovalReason ReasonOf(const BlockKey& key) { return reasons_[key]; }

 private:
  void Take(const FeedBatch& batch) {
    Picture& picture = shards_[batch.shard];
    if (batch.replaces) picture.clear();
    for (const FeedRecord& record : batch.records) {
      reasons_[record.key] = record.reason;
      if (record.tier_mask == 0) {
        picture.erase(record.key);
      } else {
        picture[record.key] = record.tier_mask;
      }
    }
  }
  void Check(const FeedHeartbeat& beat) {
    for (const FeedHeartbeat::Shard& shard : beat.shards) {
      ShardSums sums;
      for (const auto& [key, mask] : shards_[shard.shard]) {
        for (size_t tier = 0; tier < kTierCount; ++tier) {
          if ((mask >> tier & 1) == 0) continue;
          ++sums.tiers[tier].blocks;
          sums.tiers[tier].key_sum += FeedKeyDigest(key);
        }
      }
      EXPECT_EQ(sums, shard.sums) << "shard " << shard.shard;
    }
  }

  DiskWorld* const world_;
  const WatcherId id_;
  std::map<uint32_t, Picture> shards_;
  std::map<BlockKey, RemovalReason> reasons_;
};

TEST(DiskFeedTest, ARecordSaysAllTiersAndADemotionIsNoRemoval) {
  DiskWorld world;
  Watcher watcher(&world);
  watcher.Pull();
  const TestPrompt prompt = world.t().Prompt("t", 1, 2);
  const BlockKey key = prompt.keys[0];
  world.t().Put(prompt);
  watcher.Pull();
  EXPECT_EQ(watcher.TiersOf(key), kHostBit);
  world.Spill();
  watcher.Pull();
  EXPECT_EQ(watcher.TiersOf(key), kHostBit | kDiskBit);
  world.FillHost(100);
  watcher.Pull();
  EXPECT_EQ(watcher.TiersOf(key), kDiskBit);
  world.Promote(prompt);
  watcher.Pull();
  EXPECT_EQ(watcher.TiersOf(key), kDiskBit);
  world.Load();
  watcher.Pull();
  EXPECT_EQ(watcher.TiersOf(key), kHostBit | kDiskBit);
  ASSERT_TRUE(world.store().Delete("t", world.t().fingerprint(), {key}).ok());
  watcher.Pull();
  EXPECT_EQ(watcher.TiersOf(key), 0);
  EXPECT_EQ(watcher.ReasonOf(key), RemovalReason::kDeleted);
}

TEST(DiskFeedTest, WhatLeavesTheDiskIsSaidWithItsReason) {
  DiskWorld world;
  const TestPrompt prompt = world.PutOnDisk("t", 1, 2);
  Watcher watcher(&world);
  watcher.Pull();
  EXPECT_EQ(watcher.TiersOf(prompt.keys[1]), kDiskBit);
  world.disk().Damage({world.disk().files().front(), 0});
  world.Promote(prompt);
  world.Load();
  watcher.Pull();
  EXPECT_EQ(watcher.TiersOf(prompt.keys[0]), 0);
  EXPECT_EQ(watcher.ReasonOf(prompt.keys[0]), RemovalReason::kQuarantined);
  EXPECT_EQ(watcher.TiersOf(prompt.keys[1]), kHostBit | kDiskBit);
}

TEST(DiskFeedTest, BlocksFoundAtStartAreSaidTogetherWhenAllAreFound) {
  DiskWorldOptions options;
  options.store.watcher_queue_records = 8;
  DiskWorld world(options);
  const TestPrompt prompt = world.PutOnDisk("t", 1, 64);
  world.RestartBeforeRecovery();
  Watcher watcher(&world);
  watcher.Pull();
  world.Recover();
  watcher.Pull();
  for (const BlockKey& key : prompt.keys) EXPECT_EQ(watcher.TiersOf(key), kDiskBit);
}

}  // namespace
}  // namespace cairn::node
