// Writes to a disk in memory fail by script; what they left in host memory must come to disk
// without being asked for again, and not more often than may be.
#include <gmock/gmock.h>

#include "tests/cache_node/spill/disk_world.h"

namespace cairn::node {
namespace {

using testing::DiskCall;
using ::testing::Each;
using testing::MemoryDiskTier;

TEST(SpillRetryTest, AWriteThatFailedIsTriedAgainWhenTheTierServes) {
  for (const DiskCall call : {DiskCall::kStartFile, DiskCall::kAdd, DiskCall::kFinish}) {
    DiskWorld world;
    const TestPrompt prompt = world.t().Prompt("t", 1, 100);
    world.t().Put(prompt);
    world.disk().Fail(call, absl::UnavailableError("EIO"));
    world.Spill();
    EXPECT_GT(world.store().Status().missed_spill_blocks, 0u);
    world.StepHealth();
    world.Spill();
    EXPECT_EQ(world.store().Status().disk_blocks, 100u);
    EXPECT_EQ(world.store().Status().missed_spill_blocks, 0u);
    EXPECT_EQ(world.store().Status().pins, 0u);
    EXPECT_TRUE(world.Audit().ok()) << world.Audit();
    world.Restart();
    EXPECT_THAT(world.t().States(prompt), Each(BlockState::kDisk));
  }
}

TEST(SpillRetryTest, WhatWasCommittedWhileTheTierWasOutIsWrittenWhenItIsBack) {
  DiskWorld world;
  world.disk().Fail(DiskCall::kFinish, absl::UnavailableError("EIO"));
  world.disk().Fail(DiskCall::kProbe, absl::UnavailableError("EIO"), MemoryDiskTier::kUntilHealed);
  world.t().Put(world.t().Prompt("t", 1, 3));
  world.Spill();
  world.StepHealth();
  world.t().Put(world.t().Prompt("t", 2, 3));
  world.Spill();
  EXPECT_EQ(world.store().Status().disk_blocks, 0u);
  EXPECT_EQ(world.store().Status().missed_spill_blocks, 6u);
  world.disk().Heal();
  world.t().Advance(HealthProbe::kPauseMax);
  world.StepHealth();
  world.Spill();
  EXPECT_EQ(world.store().Status().disk_blocks, 6u);
}

TEST(SpillRetryTest, OnSecondTouchOnlyWhatWasUsedAgainIsTriedAgain) {
  DiskWorldOptions options;
  options.store.disk.admission = SpillAdmission::kSecondTouch;
  DiskWorld world(options);
  const TestPrompt used = world.t().Prompt("t", 1, 3);
  world.t().Put(used);
  world.t().Put(world.t().Prompt("t", 2, 3));
  world.t().Lookup("t", used, /*touch=*/true);
  world.disk().Fail(DiskCall::kFinish, absl::UnavailableError("EIO"));
  world.Spill();
  world.StepHealth();
  world.Spill();
  EXPECT_EQ(world.store().Status().disk_blocks, 3u);
}

TEST(SpillRetryTest, ADiskThatProbesWellAndWritesNothingIsTriedEverMoreSeldom) {
  DiskWorld world;
  world.disk().Fail(DiskCall::kFinish, absl::UnavailableError("EIO"), MemoryDiskTier::kUntilHealed);
  world.t().Put(world.t().Prompt("t", 1, 3));
  world.Spill();
  const uint64_t before = world.disk().calls(DiskCall::kFinish);
  for (int i = 0; i < 600; ++i) {  // A minute.
    world.t().Advance(absl::Milliseconds(100));
    world.StepHealth();
    world.Spill();
  }
  const uint64_t tries = world.disk().calls(DiskCall::kFinish) - before;
  EXPECT_GT(tries, 5u);
  EXPECT_LT(tries, 25u);
  EXPECT_EQ(world.store().Status().missed_spill_blocks, 3u);
  EXPECT_TRUE(world.Audit().ok()) << world.Audit();
}

TEST(SpillRetryTest, WhatLeftOrWasUsedMeanwhileIsNotTriedAgain) {
  DiskWorld world;
  const TestPrompt prompt = world.t().Prompt("t", 1, 3);
  world.t().Put(prompt);
  world.disk().Fail(DiskCall::kFinish, absl::UnavailableError("EIO"));
  world.Spill();
  world.StepHealth();
  ASSERT_TRUE(world.store().Delete("t", world.t().fingerprint(), {prompt.keys[2]}).ok());
  world.t().Lookup("t", prompt, /*touch=*/true);
  EXPECT_EQ(world.store().Status().missed_spill_blocks, 0u);
  EXPECT_EQ(world.store().Status().spill_queue_blocks, 2u);
  world.Spill();
  EXPECT_EQ(world.store().Status().disk_blocks, 2u);
  EXPECT_TRUE(world.Audit().ok()) << world.Audit();
}

}  // namespace
}  // namespace cairn::node
