// A small disk is filled several times over: what leaves, what is kept and what that costs in
// bytes.
#include <gmock/gmock.h>

#include "tests/cache_node/spill/disk_world.h"

namespace cairn::node {
namespace {

using testing::DiskCall;
using ::testing::Each;

DiskWorldOptions SmallDisk(double share) {
  DiskWorldOptions options;
  options.disk_bytes = 100'000;  // About 80 blocks.
  options.headroom_bytes = 20'000;
  options.store.disk.reinsert_share = share;
  return options;
}

// Commits and spills prompts of four blocks until `blocks` are written.
void Churn(DiskWorld& world, uint32_t seed, size_t blocks) {
  for (uint32_t i = 0; i < blocks / 4; ++i) {
    world.t().Put(world.t().Prompt("t", seed + i, 4));
    world.Spill();
    world.Reclaim();
  }
}

TEST(FileReclaimerTest, TheOldestLeaveAndTheDiskStaysWithinItsBytes) {
  DiskWorld world(SmallDisk(0));
  const TestPrompt first = world.t().Prompt("t", 1, 4);
  world.t().Put(first);
  world.Spill();
  Churn(world, 100, 300);
  EXPECT_LE(world.disk().GetStats().bytes_used, 100'000u);
  EXPECT_GT(world.counters().reclaimed_files, 10u);
  EXPECT_EQ(world.counters().spills_failed, 0u);
  EXPECT_THAT(world.t().States(first), Each(BlockState::kEvicted));
  EXPECT_THAT(world.t().States(world.t().Prompt("t", 174, 4)), Each(BlockState::kHost));
  EXPECT_TRUE(world.Audit().ok()) << world.Audit();
  world.Restart();
  EXPECT_THAT(world.t().States(world.t().Prompt("t", 174, 4)), Each(BlockState::kDisk));
  EXPECT_TRUE(world.Audit().ok()) << world.Audit();
}

TEST(FileReclaimerTest, WhatIsUsedIsWrittenAgainWithinTheBytesAllowed) {
  DiskWorld world(SmallDisk(0.2));
  const TestPrompt hot = world.PutOnDisk("t", 1, 4);
  for (uint32_t i = 0; i < 20; ++i) {
    world.t().Lookup("t", hot, /*touch=*/true);
    Churn(world, 20'000 + 100 * i, 32);
    ASSERT_THAT(world.t().States(hot), Each(BlockState::kDisk)) << "round " << i;
  }
  const double spilled = static_cast<double>(world.counters().spilled_bytes);
  const double again = static_cast<double>(world.counters().reinserted_bytes);
  EXPECT_GT(again, 0.0);
  EXPECT_LE(again, 0.2 * spilled);
  world.Promote(hot);
  world.Load();
  EXPECT_TRUE(world.Intact(hot));
  EXPECT_TRUE(world.Audit().ok()) << world.Audit();
}

TEST(FileReclaimerTest, ARecordThatIsFoundDamagedIsQuarantinedAndCounted) {
  DiskWorld world(SmallDisk(0.2));
  // All are used alike, so the oldest file is the first to make room.
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    const TestPrompt prompt = world.t().Prompt("t", seed, 4);
    ASSERT_EQ(world.t().Put(prompt), 4u);
    world.Spill();
    if (seed == 1) world.disk().DamageFile(1);
    world.t().Lookup("t", prompt, /*touch=*/true);
    world.Reclaim();
  }
  EXPECT_EQ(world.counters().loads_damaged, 4u);
  EXPECT_EQ(world.counters().quarantined_blocks, 4u);
  // In host memory they are whole.
  EXPECT_TRUE(world.Intact(world.t().Prompt("t", 1, 4)));
  EXPECT_TRUE(world.Audit().ok()) << world.Audit();
}

TEST(FileReclaimerTest, ABlockOnWhichOthersHangOutlivesOneWithout) {
  DiskWorldOptions options = SmallDisk(0.3);
  DiskWorld world(options);
  // The parent is in the oldest file with three strangers, its children are written later.
  const TestPrompt parent = world.t().Prompt("t", 1, 1);
  const TestPrompt lone = world.t().Prompt("t", 2, 1);
  world.t().Put(parent);
  world.t().Put(lone);
  world.Spill();
  const TestPrompt family = world.t().Branch(parent, 1, 7, 3);
  world.t().Put(family);
  world.Spill();
  Churn(world, 100, 60);
  world.Restart();
  EXPECT_EQ(world.t().States(lone)[0], BlockState::kNeverSeen);
  EXPECT_EQ(world.t().States(parent)[0], BlockState::kDisk);
}

TEST(FileReclaimerTest, AnOrphanIsNotWrittenAgain) {
  DiskWorld world(SmallDisk(1));
  const TestPrompt prompt = world.PutOnDisk("t", 1, 4);
  ASSERT_TRUE(world.store().Delete("t", world.t().fingerprint(), {prompt.keys[0]}).ok());
  world.t().Lookup("t", prompt, /*touch=*/true);
  const uint64_t before = world.counters().reinserted_blocks;
  const std::optional<ReclaimTask> task = world.store().TakeReclaim();
  ASSERT_TRUE(task.has_value());
  for (const MoveTask& move : task->moves) EXPECT_NE(move.write.block.key, prompt.keys[1]);
  std::vector<uint64_t> ids;
  for (const MoveTask& move : task->moves) ids.push_back(move.write.id);
  world.store().AbandonWrites(ids);
  world.store().AbandonReclaim(task->file);
  EXPECT_EQ(world.counters().reinserted_blocks, before);
  EXPECT_TRUE(world.Audit().ok()) << world.Audit();
}

TEST(FileReclaimerTest, AMoveNeverMakesAReadableBlockVanish) {
  for (const DiskCall moment :
       {DiskCall::kRead, DiskCall::kAdd, DiskCall::kFinish, DiskCall::kDropFile}) {
    DiskWorld world(SmallDisk(1));
    const TestPrompt hot = world.PutOnDisk("t", 1, 4);
    world.t().Lookup("t", hot, /*touch=*/true);
    int looked = 0;
    world.disk().SetHook([&](DiskCall call) {
      if (call != moment) return;
      ++looked;
      EXPECT_EQ(world.t().Present(hot), 4u);
    });
    world.disk().SetBytesMax(21'000);
    world.StepReclaim();
    world.disk().SetHook(nullptr);
    EXPECT_GT(looked, 0);
    EXPECT_EQ(world.t().Present(hot), 4u);
    world.Restart();
    EXPECT_EQ(world.t().Present(hot), 4u);
    EXPECT_TRUE(world.Audit().ok()) << world.Audit();
  }
}

TEST(FileReclaimerTest, AKillBetweenWritingAgainAndDroppingLeavesTheBlockOnce) {
  DiskWorld world(SmallDisk(1));
  const TestPrompt hot = world.PutOnDisk("t", 1, 4);
  world.t().Lookup("t", hot, /*touch=*/true);
  world.disk().Fail(DiskCall::kDropFile, absl::UnavailableError("killed here"));
  world.disk().SetBytesMax(21'000);
  world.StepReclaim();
  EXPECT_EQ(world.disk().files().size(), 2u);
  world.Restart();
  EXPECT_EQ(world.store().Status().disk_blocks, 4u);
  // The older file holds nothing any more: it goes without a block.
  world.StepReclaim();
  EXPECT_EQ(world.disk().files().size(), 1u);
  EXPECT_EQ(world.t().Present(hot), 4u);
  world.Promote(hot);
  world.Load();
  EXPECT_TRUE(world.Intact(hot));
  EXPECT_TRUE(world.Audit().ok()) << world.Audit();
}

TEST(FileReclaimerTest, ABlockDeletedWhileItIsWrittenAgainNeverComesBack) {
  for (const DiskCall moment : {DiskCall::kRead, DiskCall::kAdd, DiskCall::kFinish}) {
    DiskWorld world(SmallDisk(1));
    const TestPrompt hot = world.PutOnDisk("t", 1, 4);
    world.t().Lookup("t", hot, /*touch=*/true);
    bool deleted = false;
    world.disk().SetHook([&](DiskCall call) {
      if (call != moment || std::exchange(deleted, true)) return;
      EXPECT_TRUE(world.store().Delete("t", world.t().fingerprint(), {hot.keys[3]}).ok());
    });
    world.disk().SetBytesMax(21'000);
    world.StepReclaim();
    world.disk().SetHook(nullptr);
    ASSERT_TRUE(deleted);
    EXPECT_EQ(world.t().States(hot)[3], BlockState::kDeleted);
    world.Restart();
    EXPECT_EQ(world.t().States(hot)[3], BlockState::kNeverSeen);
    EXPECT_EQ(world.t().Present(hot), 3u);
    EXPECT_TRUE(world.Audit().ok()) << world.Audit();
  }
}

TEST(FileReclaimerTest, ABlockThatIsReadWhileItsFileLeavesArrives) {
  DiskWorld world(SmallDisk(1));
  const TestPrompt prompt = world.PutOnDisk("t", 1, 2);
  world.Promote(prompt);
  bool reclaimed = false;
  world.disk().SetHook([&](DiskCall call) {
    if (call != DiskCall::kRead || std::exchange(reclaimed, true)) return;
    world.disk().SetBytesMax(21'000);
    world.StepReclaim();
  });
  world.Load();
  world.disk().SetHook(nullptr);
  ASSERT_TRUE(reclaimed);
  EXPECT_TRUE(world.Intact(prompt));
  EXPECT_TRUE(world.Audit().ok()) << world.Audit();
}

}  // namespace
}  // namespace cairn::node
