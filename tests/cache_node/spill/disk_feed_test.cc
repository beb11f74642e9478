// What watchers are told of two tiers: a watcher believes its messages, and its picture and digests
// are compared with what the store says of itself.
#include <gmock/gmock.h>

#include "tests/cache_node/spill/disk_world.h"
#include "tests/cache_node/spill/feed_watcher.h"

namespace cairn::node {
namespace {

TEST(DiskFeedTest, ARecordSaysAllTiersAndADemotionIsNoRemoval) {
  DiskWorld world;
  FeedWatcher watcher(&world.store());
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
  FeedWatcher watcher(&world.store());
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
  FeedWatcher watcher(&world.store());
  watcher.Pull();
  world.Recover();
  watcher.Pull();
  for (const BlockKey& key : prompt.keys) EXPECT_EQ(watcher.TiersOf(key), kDiskBit);
}

}  // namespace
}  // namespace cairn::node
