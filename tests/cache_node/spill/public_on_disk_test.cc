// A list of public prefixes over blocks on disk: what it leads to stays, the rest is gone for good,
// over restarts too.
#include <gmock/gmock.h>

#include "tests/cache_node/spill/disk_world.h"

namespace cairn::node {
namespace {

using ::testing::Each;

class PublicOnDiskTest : public ::testing::Test {
 protected:
  absl::StatusOr<uint64_t> Keep(const absl::flat_hash_set<BlockKey>& last_keys) {
    const absl::StatusOr<RemovedBlocks> removed = world_.store().KeepPublic(last_keys);
    EXPECT_TRUE(world_.Audit().ok()) << world_.Audit();
    if (!removed.ok()) return removed.status();
    return removed->blocks;
  }

  DiskWorld world_;
};

TEST_F(PublicOnDiskTest, WhatAPrefixOnDiskIsMadeOfStaysAndTheRestIsGoneForGood) {
  const TestPrompt listed = world_.PutOnDisk("public", 1, 3);
  const TestPrompt other = world_.PutOnDisk("public", 2, 3);
  const TestPrompt own = world_.PutOnDisk("t", 3, 3);
  // The end of it in host memory too, what is before it on disk only.
  world_.Promote(listed);
  world_.Load();
  const absl::StatusOr<uint64_t> removed = Keep({listed.keys.back()});
  ASSERT_TRUE(removed.ok()) << removed.status();
  EXPECT_GE(*removed, 3u) << "and what filled the host, where it is public";
  EXPECT_EQ(world_.t().Present(listed), 3u);
  EXPECT_THAT(world_.t().States(other), Each(BlockState::kDeleted));
  world_.Restart();
  EXPECT_EQ(world_.t().Present(listed), 3u);
  EXPECT_EQ(world_.t().Present(other), 0u);
  EXPECT_EQ(world_.t().Present(own), 3u);
}

TEST_F(PublicOnDiskTest, WhileBlocksAreBeingFoundItIsToBeTriedAgain) {
  const TestPrompt other = world_.PutOnDisk("public", 2, 3);
  world_.RestartBeforeRecovery();
  EXPECT_EQ(Keep({}).status().code(), absl::StatusCode::kUnavailable);
  world_.Recover();
  EXPECT_EQ(*Keep({}), 3u);
  EXPECT_EQ(world_.t().Present(other), 0u);
}

TEST_F(PublicOnDiskTest, ATenantsBlocksOnDiskOutliveThePublicOnesBeforeThem) {
  const TestPrompt shared = world_.t().Prompt("public", 1, 2);
  ASSERT_EQ(world_.t().Put(shared), 2u);
  const TestPrompt own = world_.t().After(shared, "t", 2, 2);
  ASSERT_EQ(world_.t().Put(own), 2u);
  world_.Spill();
  EXPECT_EQ(*Keep({}), 2u);
  world_.Restart();
  EXPECT_EQ(world_.t().Present(shared), 0u);
  EXPECT_THAT(world_.t().States(own), Each(BlockState::kDisk));
  ASSERT_EQ(world_.t().Put(shared), 2u);
  EXPECT_EQ(world_.t().Present(own), 2u);
  EXPECT_TRUE(world_.Audit().ok()) << world_.Audit();
}

}  // namespace
}  // namespace cairn::node
