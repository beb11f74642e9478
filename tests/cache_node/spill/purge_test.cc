// What a broken worker wrote is removed from a node: from host memory and disk, with all that
// follows it, and for good.
#include <gmock/gmock.h>

#include "tests/cache_node/spill/disk_world.h"

namespace cairn::node {
namespace {

using ::testing::Each;

constexpr uint64_t kBroken = 0x1234'5678'9abc'def0;
constexpr uint64_t kSound = 7;

class PurgeTest : public ::testing::Test {
 protected:
  int64_t Now() { return absl::ToUnixMillis(world_.t().clock.WallNow()); }
  // All blocks of it that are not there yet are written by `writer`.
  TestPrompt PutBy(uint64_t writer, const TestPrompt& prompt, size_t blocks) {
    world_.t().provenance = {.writer = writer, .written_unix_ms = Now()};
    EXPECT_EQ(world_.t().Put(prompt), blocks);
    world_.t().provenance = {};
    return prompt;
  }
  TestPrompt PutBy(uint64_t writer, uint32_t seed, size_t blocks, const std::string& tenant = "t") {
    return PutBy(writer, world_.t().Prompt(tenant, seed, blocks), blocks);
  }
  uint64_t Purge(int64_t since_unix_ms) {
    const absl::StatusOr<RemovedBlocks> removed =
        world_.store().PurgeWriter(kBroken, since_unix_ms, Now());
    EXPECT_TRUE(removed.ok()) << removed.status();
    EXPECT_TRUE(world_.Audit().ok()) << world_.Audit();
    return removed.ok() ? removed->blocks : 0;
  }

  DiskWorld world_;
};

TEST_F(PurgeTest, OnlyWhatTheWriterWroteSinceThenIsGone) {
  const TestPrompt before = PutBy(kBroken, 1, 3);
  world_.t().Advance(absl::Minutes(1));
  const int64_t since = Now();
  const TestPrompt after = PutBy(kBroken, 2, 3);
  const TestPrompt other_tenant = PutBy(kBroken, 3, 3, "u");
  const TestPrompt sound = PutBy(kSound, 4, 3);
  EXPECT_EQ(Purge(since), 6u);
  EXPECT_EQ(world_.t().Present(before), 3u);
  EXPECT_EQ(world_.t().Present(sound), 3u);
  EXPECT_THAT(world_.t().States(after), Each(BlockState::kDeleted));
  EXPECT_EQ(world_.t().Present(other_tenant), 0u);
  EXPECT_EQ(Purge(since), 0u);
}

TEST_F(PurgeTest, WhatOthersComputedFromItGoesToo) {
  const TestPrompt broken = PutBy(kBroken, 1, 2);
  const TestPrompt longer = PutBy(kSound, world_.t().Branch(broken, 2, 5, 6), 6);
  const TestPrompt sibling = PutBy(kSound, world_.t().Branch(longer, 4, 6, 2), 2);
  // The children are in slots before their parents', so one pass does not see it all.
  EXPECT_EQ(Purge(0), 2u + 6u + 2u);
  // Nor do they come back with their parents.
  PutBy(kSound, broken, 2);
  EXPECT_EQ(world_.t().Present(longer), 2u);
  EXPECT_EQ(world_.t().Present(sibling), 2u);
}

TEST_F(PurgeTest, FromDiskItIsGoneForGood) {
  const TestPrompt broken = PutBy(kBroken, 1, 2);
  const TestPrompt longer = PutBy(kSound, world_.t().Branch(broken, 2, 5, 3), 3);
  const TestPrompt sound = PutBy(kSound, 2, 3);
  world_.Spill();
  world_.FillHost(1000);
  ASSERT_THAT(world_.t().States(longer), Each(BlockState::kDisk));
  EXPECT_EQ(Purge(0), 5u);
  EXPECT_EQ(world_.t().Present(longer), 0u);
  world_.Restart();
  EXPECT_EQ(world_.t().Present(longer), 0u);
  EXPECT_EQ(world_.t().Present(sound), 3u);
}

TEST_F(PurgeTest, AWriterIsKnownAfterARestartAndALoad) {
  const TestPrompt on_disk = PutBy(kBroken, 1, 2);
  const TestPrompt loaded = PutBy(kBroken, 2, 2);
  world_.Spill();
  world_.Restart();
  world_.Promote(loaded);
  world_.Load();
  ASSERT_TRUE(world_.Intact(loaded));
  EXPECT_EQ(Purge(0), 4u);
  EXPECT_EQ(world_.t().Present(on_disk) + world_.t().Present(loaded), 0u);
}

TEST_F(PurgeTest, WhatIsBeingWrittenOrSpilledOrLoadedGoesToo) {
  const TestPrompt loading = PutBy(kBroken, 1, 2);
  world_.Spill();
  world_.FillHost(1000);
  world_.Promote(loading);
  const TestPrompt spilling = PutBy(kBroken, 2, 2);
  while (world_.StepSpill()) {
  }
  world_.t().provenance = {.writer = kBroken, .written_unix_ms = Now()};
  const TestPrompt writing = world_.t().Prompt("t", 3, 1);
  const absl::StatusOr<ReserveAnswer> reserved = world_.t().Reserve(writing);
  ASSERT_TRUE(reserved.ok());
  Purge(0);
  world_.Load();
  world_.Spill();
  EXPECT_FALSE(world_.t().WriteBlock("t", *reserved->token, writing.keys[0], 0).ok());
  for (const TestPrompt& prompt : {loading, spilling, writing}) {
    EXPECT_EQ(world_.t().Present(prompt), 0u);
  }
  world_.Restart();
  for (const TestPrompt& prompt : {loading, spilling, writing}) {
    EXPECT_EQ(world_.t().Present(prompt), 0u);
  }
}

TEST_F(PurgeTest, WhatTheWriterWritesAfterwardsIsNotItsBusiness) {
  const TestPrompt before = PutBy(kBroken, 1, 3);
  const int64_t until = Now();
  world_.t().Advance(absl::Seconds(2));
  const TestPrompt after = PutBy(kBroken, 2, 3);
  ASSERT_TRUE(world_.store().PurgeWriter(kBroken, 0, until).ok());
  EXPECT_EQ(world_.t().Present(before), 0u);
  EXPECT_EQ(world_.t().Present(after), 3u);
}

TEST_F(PurgeTest, BeforeAllBlocksWereFoundItSaysToAskAgain) {
  PutBy(kBroken, 1, 2);
  world_.Spill();
  world_.RestartBeforeRecovery();
  EXPECT_EQ(world_.store().PurgeWriter(kBroken, 0, Now()).status().code(),
            absl::StatusCode::kUnavailable);
  world_.Recover();
  EXPECT_EQ(Purge(0), 2u);
}

TEST_F(PurgeTest, MoreThanOneBatchIsPurged) {
  DiskWorldOptions options;
  options.pool_bytes = 16 * 262144;
  DiskWorld large(options);
  large.t().provenance = {.writer = kBroken, .written_unix_ms = 1'000};
  for (uint32_t seed = 1; seed <= 30; ++seed) {
    ASSERT_EQ(large.t().Put(large.t().Prompt("t", seed, 100)), 100u);
  }
  large.Spill();
  const absl::StatusOr<RemovedBlocks> removed = large.store().PurgeWriter(kBroken, 0, 1'000);
  ASSERT_TRUE(removed.ok()) << removed.status();
  EXPECT_EQ(removed->blocks, 3000u);
  EXPECT_EQ(large.store().Status().disk_blocks, 0u);
  EXPECT_TRUE(large.Audit().ok()) << large.Audit();
}

}  // namespace
}  // namespace cairn::node
