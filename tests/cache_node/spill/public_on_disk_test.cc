// A list of public prefixes over blocks on disk: what it leads to stays, the rest is gone for good,
// over restarts too.
#include <gmock/gmock.h>

#include <utility>

#include "tests/cache_node/spill/disk_world.h"

namespace cairn::node {
namespace {

using ::testing::Each;

class PublicOnDiskTest : public ::testing::Test {
 protected:
  absl::StatusOr<uint64_t> Keep(const absl::flat_hash_set<BlockKey>& last_keys) {
    uint64_t removed = 0;
    const absl::Status kept = world_.store().KeepPublic(last_keys, &removed);
    EXPECT_TRUE(world_.Audit().ok()) << world_.Audit();
    if (!kept.ok()) return kept;
    return removed;
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

TEST_F(PublicOnDiskTest, ADiskThatCannotBeToldDoesNotKeepAnythingReadable) {
  const TestPrompt on_disk = world_.PutOnDisk("public", 2, 3);
  const TestPrompt in_both = world_.t().Prompt("public", 3, 2);
  ASSERT_EQ(world_.t().Put(in_both), 2u);
  world_.Spill();
  const TestPrompt in_host = world_.t().Prompt("public", 4, 2);
  ASSERT_EQ(world_.t().Put(in_host), 2u);
  world_.disk().Fail(testing::DiskCall::kMarkDead, absl::ResourceExhaustedError("full"),
                     testing::MemoryDiskTier::kUntilHealed);
  EXPECT_EQ(Keep({}).status().code(), absl::StatusCode::kResourceExhausted);
  for (const TestPrompt& prompt : {on_disk, in_both, in_host}) {
    EXPECT_THAT(world_.t().States(prompt), Each(BlockState::kDeleted));
  }
  world_.disk().Heal();
  world_.Spill();
  EXPECT_EQ(*Keep({}), 0u);
  // The disk was not told; the list is, at each start.
  world_.Restart();
  EXPECT_GE(*Keep({}), 5u);
  world_.Restart();
  EXPECT_EQ(world_.t().Present(on_disk) + world_.t().Present(in_both), 0u);
}

TEST(PublicWithoutItsDiskTest, ADiskThatIsNotOpenDoesNotKeepAnythingReadable) {
  testing::MemoryDiskTier disk(uint64_t{1} << 20);
  TierLedger ledger(&disk);
  TestStore t({.ledger = &ledger});
  t.Register(TestStore::Shape(1024), "public");
  const TestPrompt listed = t.Prompt("public", 1, 2);
  const TestPrompt other = t.Prompt("public", 2, 2);
  ASSERT_EQ(t.Put(listed) + t.Put(other), 4u);
  uint64_t removed = 0;
  EXPECT_EQ(t.store->KeepPublic({listed.keys.back()}, &removed).code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(removed, 2u);
  EXPECT_EQ(t.Present(other), 0u);
  EXPECT_EQ(t.Present(listed), 2u);
}

TEST_F(PublicOnDiskTest, WhatIsReservedMeanwhileStays) {
  const TestPrompt other = world_.PutOnDisk("public", 2, 3);
  const TestPrompt listed = world_.t().Prompt("public", 4, 3);
  const TestPrompt late = world_.t().Prompt("public", 5, 3);
  // Two blocks of a listed prefix are there, and the rest comes when the sweep is past it.
  ASSERT_EQ(world_.t().Put(world_.t().Prompt("public", 4, 2)), 2u);
  bool first = true;
  world_.disk().SetHook([&](testing::DiskCall call) {
    if (call != testing::DiskCall::kMarkDead || !std::exchange(first, false)) return;
    world_.t().Advance(absl::Milliseconds(1));
    world_.t().Put(late);
  });
  EXPECT_EQ(*Keep({listed.keys.back(), late.keys.back()}), 5u);
  EXPECT_FALSE(first);
  EXPECT_EQ(world_.t().Present(late), 3u);
  EXPECT_EQ(world_.t().Present(other), 0u);
  world_.disk().SetHook(nullptr);
  // By a list without it, what was new once goes.
  EXPECT_EQ(*Keep({listed.keys.back()}), 3u);
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
