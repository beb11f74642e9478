// What writers wish for their blocks holds on disk too, and over restarts.
#include <gmock/gmock.h>

#include "cache_node/store/disk_index.h"
#include "tests/cache_node/spill/disk_world.h"

namespace cairn::node {
namespace {

using ::testing::Each;

class RetentionOnDiskTest : public ::testing::Test {
 protected:
  int64_t UnixMsIn(absl::Duration duration) {
    return absl::ToUnixMillis(world_.t().clock.WallNow() + duration);
  }
  TestPrompt PutOnDisk(uint32_t seed, size_t blocks, const Retention& retention) {
    world_.t().retention = retention;
    const TestPrompt prompt = world_.t().Prompt("t", seed, blocks);
    EXPECT_EQ(world_.t().Put(prompt), blocks);
    world_.t().retention = {};
    world_.Spill();
    world_.FillHost(1000 * seed);
    EXPECT_THAT(world_.t().States(prompt), Each(BlockState::kDisk));
    return prompt;
  }
  void PassTime(absl::Duration duration) {
    world_.t().Advance(duration);
    world_.store().EndRetention(world_.t().clock.WallNow());
  }

  DiskWorld world_;
};

TEST_F(RetentionOnDiskTest, AtItsTimeABlockIsGoneFromDiskAndStaysGone) {
  const TestPrompt prompt = PutOnDisk(1, 3, {.expires_unix_ms = UnixMsIn(absl::Minutes(1))});
  const TestPrompt other = PutOnDisk(2, 3, {});
  PassTime(absl::Minutes(1));
  EXPECT_THAT(world_.t().States(prompt), Each(BlockState::kDeleted));
  EXPECT_THAT(world_.t().States(other), Each(BlockState::kDisk));
  world_.Restart();
  EXPECT_EQ(world_.t().Present(prompt), 0u);
  EXPECT_EQ(world_.t().Present(other), 3u);
  EXPECT_TRUE(world_.Audit().ok()) << world_.Audit();
}

TEST_F(RetentionOnDiskTest, ATimeIsStillKnownAfterARestart) {
  const TestPrompt prompt = PutOnDisk(1, 3, {.expires_unix_ms = UnixMsIn(absl::Minutes(1))});
  world_.Restart();
  PassTime(absl::Seconds(1));
  EXPECT_EQ(world_.t().Present(prompt), 3u);
  world_.Promote(prompt);
  world_.Load();
  EXPECT_TRUE(world_.Intact(prompt));
  PassTime(absl::Minutes(1));
  EXPECT_THAT(world_.t().States(prompt), Each(BlockState::kDeleted));
  EXPECT_TRUE(world_.Audit().ok()) << world_.Audit();
}

TEST_F(RetentionOnDiskTest, WhatFollowsABlockThatIsOnlyOnDiskGoesWithIt) {
  const TestPrompt prompt = PutOnDisk(1, 2, {.expires_unix_ms = UnixMsIn(absl::Minutes(1))});
  const TestPrompt longer = world_.t().Branch(prompt, 2, 5, 1);
  ASSERT_EQ(world_.t().Put(longer), 1u);
  PassTime(absl::Minutes(1));
  EXPECT_EQ(world_.t().Present(longer), 0u);
  EXPECT_THAT(world_.t().States(longer), Each(BlockState::kDeleted));
  EXPECT_TRUE(world_.Audit().ok()) << world_.Audit();
}

TEST_F(RetentionOnDiskTest, ABlockThatIsWrittenToDiskWhenItsTimeComesIsNotFoundThere) {
  world_.t().retention = {.expires_unix_ms = UnixMsIn(absl::Minutes(1))};
  const TestPrompt prompt = world_.t().Prompt("t", 1, 2);
  ASSERT_EQ(world_.t().Put(prompt), 2u);
  while (world_.StepSpill()) {
  }
  PassTime(absl::Minutes(1));
  world_.Spill();
  EXPECT_EQ(world_.t().Present(prompt), 0u);
  world_.Restart();
  EXPECT_EQ(world_.t().Present(prompt), 0u);
  EXPECT_TRUE(world_.Audit().ok()) << world_.Audit();
}

TEST_F(RetentionOnDiskTest, APriorityWithoutAnEndComesBackFromDiskWithItsBlock) {
  const TestPrompt low = PutOnDisk(1, 2, {.priority = 10});
  world_.Restart();
  world_.FillHost(5000);
  world_.Promote(low);
  world_.Load();
  ASSERT_TRUE(world_.Intact(low));
  // They came last and would go last.
  ASSERT_EQ(world_.t().Put(world_.t().Prompt("t", 9000, 2)), 2u);
  EXPECT_THAT(world_.t().States(low), Each(BlockState::kDisk));
}

TEST_F(RetentionOnDiskTest, ABlockWrittenAnewAfterItsTimeOutlivesTheOldOneOverARestart) {
  const TestPrompt prompt = PutOnDisk(1, 2, {.expires_unix_ms = UnixMsIn(absl::Minutes(1))});
  PassTime(absl::Minutes(1));
  ASSERT_EQ(world_.t().Put(prompt), 2u);
  world_.Spill();
  world_.Restart();
  PassTime(absl::Minutes(1));
  EXPECT_THAT(world_.t().States(prompt), Each(BlockState::kDisk));
  EXPECT_TRUE(world_.Audit().ok()) << world_.Audit();
}

TEST_F(RetentionOnDiskTest, EndsOfBlocksOnDiskAreCountedWhereTheDisksIndexIs) {
  PutOnDisk(1, 100, {.expires_unix_ms = UnixMsIn(absl::Minutes(1))});
  const uint64_t with_ends = world_.store().Status().disk_index_bytes;
  PassTime(absl::Minutes(1));
  EXPECT_LE(world_.store().Status().disk_index_bytes,
            with_ends - 100 * (DiskIndex::kBytesPerBlock + DiskIndex::kBytesPerExpiry));
}

}  // namespace
}  // namespace cairn::node
