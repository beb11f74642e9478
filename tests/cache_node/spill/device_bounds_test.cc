// What does not fit on an emulated device, in a store whose movers the test steps: too much to be
// known of it, too large a block, too many small ones in the way of a large one; and what comes
// from it while its scope is cleared.
#include <gmock/gmock.h>

#include <utility>

#include "cache_node/store/scope_digest.h"
#include "tests/cache_node/spill/disk_world.h"

namespace cairn::node {
namespace {

using ::testing::Each;

constexpr uint64_t kDeviceBlocks = 64;

DiskWorldOptions WithDevice(uint64_t device_blocks = kDeviceBlocks) {
  DiskWorldOptions options;
  options.device_bytes = device_blocks * DiskWorld::kBlockBytes;
  return options;
}

// Room for a few blocks.
constexpr uint64_t kLittleIndexBytes = 6'000;

DiskWorldOptions WithLittleIndex() {
  DiskWorldOptions options = WithDevice();
  options.store.device.index_bytes_max = kLittleIndexBytes;
  return options;
}

size_t OnDevice(DiskWorld* world, const TestPrompt& prompt) {
  size_t count = 0;
  for (const BlockKey& key : prompt.keys) {
    if (world->store().PinOnDevice(prompt.tenant(), world->t().fingerprint(), key).pin) ++count;
  }
  return count;
}

void Use(DiskWorld* world, const TestPrompt& prompt) {
  world->t().Lookup(prompt.tenant(), prompt, /*touch=*/true);
}

// As the filler's thread, which is woken again where it stopped only to let others in.
void FillAll(DiskWorld* world) {
  for (uint64_t signals = 0; signals != world->t().upload_signals.load();) {
    signals = world->t().upload_signals.load();
    world->Fill();
  }
}

TEST(DeviceBoundsTest, WhatIsUsedDisplacesOthersWhereTheIndexIsFull) {
  DiskWorld world(WithLittleIndex());
  for (uint32_t seed = 10; seed < 50; ++seed) {
    world.t().Put(world.t().Prompt("t", seed, 1));
    world.Fill();
  }
  EXPECT_LT(world.store().Status().device_blocks, 16u);
  EXPECT_GT(world.store().Status().device_blocks, 2u);
  const TestPrompt hot = world.t().Prompt("t", 2, 4);
  world.t().Put(hot);
  Use(&world, hot);
  world.Fill();
  EXPECT_EQ(OnDevice(&world, hot), 4u);
  EXPECT_LE(world.store().Status().device_index_bytes, kLittleIndexBytes);
  EXPECT_TRUE(world.Audit().ok()) << world.Audit();
}

TEST(DeviceBoundsTest, NothingIsCopiedThatTheIndexHasNoRoomFor) {
  DiskWorld world(WithLittleIndex());
  world.t().Put(world.t().Prompt("t", 1, 40));
  std::vector<UploadTask> tasks = world.store().TakeUploads(64, 1 << 20);
  std::vector<uint64_t> ids;
  for (const UploadTask& task : tasks) ids.push_back(task.id);
  EXPECT_GT(ids.size(), 2u);
  EXPECT_LE(world.store().Status().device_index_bytes, kLittleIndexBytes);
  EXPECT_TRUE(world.Audit().ok()) << world.Audit();
  world.store().FinishUploads(ids, absl::OkStatus());
  tasks.clear();
  EXPECT_EQ(world.counters().uploads_failed.load(), 0u);
  EXPECT_EQ(world.store().Status().device_blocks, ids.size());
  EXPECT_TRUE(world.Audit().ok()) << world.Audit();
}

TEST(DeviceBoundsTest, BlocksThatFitIntoNoSegmentAreCounted) {
  DiskWorld world(WithDevice());
  world.t().Register(TestStore::Shape(8192, "larger than a sixteenth"));
  const TestPrompt prompt = world.t().Prompt("t", 1, 2);
  world.t().Put(prompt);
  Use(&world, prompt);
  world.Fill();
  EXPECT_EQ(OnDevice(&world, prompt), 0u);
  EXPECT_EQ(world.counters().uploads_too_large.load(), 2u);
}

// The small ones leave in more than one turn.
TEST(DeviceBoundsTest, LargeBlockGetsItsRoomFromAnyNumberOfSmallOnes) {
  const size_t small_blocks = 2 * BlockStore::kStepsPerLock;
  DiskWorldOptions options = WithDevice(/*device_blocks=*/16 * small_blocks);
  options.pool_bytes = 32 * small_blocks * DiskWorld::kBlockBytes;
  DiskWorld world(options);
  for (uint32_t seed = 1; seed <= 16 * small_blocks / 128; ++seed) {
    ASSERT_EQ(world.t().Put(world.t().Prompt("t", seed, 128)), 128u);
    FillAll(&world);
  }
  EXPECT_EQ(world.store().Status().device_blocks, 16 * small_blocks);
  world.t().Register(TestStore::Shape(small_blocks * DiskWorld::kBlockBytes, "large"));
  const TestPrompt large = world.t().Prompt("t", 999, 1);
  world.t().Put(large);
  Use(&world, large);
  FillAll(&world);
  EXPECT_EQ(OnDevice(&world, large), 1u);
  EXPECT_TRUE(world.Audit().ok()) << world.Audit();
}

// More blocks than are removed under one lock, and a lookup that wants some back in between.
TEST(DeviceBoundsTest, NothingIsLoadedOfAScopeThatIsBeingCleared) {
  DiskWorldOptions options = WithDevice();
  options.pool_bytes = 32 * 16384;
  DiskWorld world(options);
  const TestPrompt moving = world.PutOnDevice("t", 1, 4, "salt");
  constexpr size_t kMany = BlockStore::kStepsPerLock / 2 + 20;
  for (uint32_t seed = 2; seed <= 3; ++seed) {
    ASSERT_EQ(world.t().Put(world.t().Prompt("t", seed, kMany, "salt")), kMany);
  }
  bool asked = false;
  world.t().on_settled = [&] {
    world.t().on_settled = nullptr;
    asked = true;
    world.Promote(moving);
    EXPECT_TRUE(world.store().TakeDeviceLoads(10, 1 << 20).empty());
  };
  const auto removed =
      world.store().ClearScope("t", world.t().fingerprint(), ScopeDigest(moving.scope));
  ASSERT_TRUE(removed.ok());
  EXPECT_TRUE(asked);
  EXPECT_EQ(removed->blocks, moving.keys.size() + 2 * kMany);
  EXPECT_THAT(world.t().States(moving), Each(BlockState::kDeleted));
  EXPECT_EQ(world.store().Status().device_used_bytes, 0u);
  EXPECT_TRUE(world.Audit().ok()) << world.Audit();

  EXPECT_EQ(world.t().Put(moving), moving.keys.size());
}

}  // namespace
}  // namespace cairn::node
