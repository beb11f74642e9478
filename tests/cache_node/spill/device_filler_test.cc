// What comes to an emulated device and what leaves it, in a store whose movers the test steps: the
// device holds sixteen segments of four blocks each.
#include <gmock/gmock.h>

#include "tests/cache_node/spill/disk_world.h"
#include "tests/cache_node/spill/feed_watcher.h"

namespace cairn::node {
namespace {

using ::testing::Each;

constexpr uint64_t kDeviceBlocks = 64;

DiskWorldOptions WithDevice() {
  DiskWorldOptions options;
  options.device_bytes = kDeviceBlocks * DiskWorld::kBlockBytes;
  return options;
}

class DeviceFillerTest : public ::testing::Test {
 protected:
  DeviceFillerTest() : world_(WithDevice()) {}
  ~DeviceFillerTest() override { EXPECT_TRUE(world_.Audit().ok()) << world_.Audit(); }

  size_t OnDevice(const TestPrompt& prompt) {
    size_t count = 0;
    for (const BlockKey& key : prompt.keys) {
      if (world_.store().PinOnDevice(prompt.tenant(), world_.t().fingerprint(), key).pin) ++count;
    }
    return count;
  }
  void Use(const TestPrompt& prompt) { world_.t().Lookup(prompt.tenant(), prompt, /*touch=*/true); }

  DiskWorld world_;
};

TEST_F(DeviceFillerTest, CommittedBlocksAreCopiedWhileThereIsRoomAndStayInHostMemory) {
  const TestPrompt prompt = world_.t().Prompt("t", 1, 8);
  world_.t().Put(prompt);
  EXPECT_EQ(OnDevice(prompt), 0u);
  world_.Fill();
  EXPECT_EQ(OnDevice(prompt), 8u);
  EXPECT_THAT(world_.t().States(prompt), Each(BlockState::kHost));
  EXPECT_EQ(world_.store().Status().device_used_bytes, 8 * DiskWorld::kBlockBytes);
  EXPECT_EQ(world_.store().Tenants()[0].device_bytes, 8 * DiskWorld::kBlockBytes);
}

TEST_F(DeviceFillerTest, BytesOnTheDeviceAreTheBlocks) {
  const TestPrompt prompt = world_.t().Prompt("t", 1, 3);
  world_.t().Put(prompt);
  world_.Fill();
  for (const BlockKey& key : prompt.keys) {
    const auto copy = world_.store().PinOnDevice("t", world_.t().fingerprint(), key);
    ASSERT_TRUE(copy.pin);
    const std::vector<uint8_t> bytes = world_.t().Bytes(key, {0, 0, 0}, 1);
    EXPECT_EQ(std::memcmp(copy.pin.SegmentAddress(0), bytes.data(), bytes.size()), 0);
    EXPECT_EQ(copy.pin.map().block_bytes(), bytes.size());
  }
}

TEST_F(DeviceFillerTest, RecordSaysTheDeviceTooAndADemotionIsNoRemoval) {
  FeedWatcher watcher(&world_.store());
  const TestPrompt prompt = world_.t().Prompt("t", 1, 2);
  world_.t().Put(prompt);
  world_.Fill();
  watcher.Pull();
  EXPECT_EQ(watcher.TiersOf(prompt.keys[0]), kDeviceBit | kHostBit);
  world_.Spill();
  watcher.Pull();
  EXPECT_EQ(watcher.TiersOf(prompt.keys[0]), kDeviceBit | kHostBit | kDiskBit);
  world_.FillHost(100);
  watcher.Pull();
  EXPECT_EQ(watcher.TiersOf(prompt.keys[0]), kDeviceBit | kDiskBit);
  EXPECT_EQ(world_.counters().device_demoted_blocks.load(), 2u);
  FeedWatcher late(&world_.store());
  late.Pull();
  EXPECT_EQ(late.TiersOf(prompt.keys[0]), kDeviceBit | kDiskBit);
}

TEST_F(DeviceFillerTest, WhatWasNeverUsedDisplacesNothing) {
  const TestPrompt first = world_.t().Prompt("t", 1, kDeviceBlocks);
  world_.t().Put(first);
  world_.Fill();
  const TestPrompt second = world_.t().Prompt("t", 2, 8);
  world_.t().Put(second);
  world_.Fill();
  EXPECT_EQ(OnDevice(first), kDeviceBlocks);
  EXPECT_EQ(OnDevice(second), 0u);
  EXPECT_GT(world_.counters().uploads_declined.load(), 0u);
}

TEST_F(DeviceFillerTest, WhatIsUsedDisplacesWhatWasUsedLongerAgo) {
  const TestPrompt cold = world_.t().Prompt("t", 1, 32);
  const TestPrompt warm = world_.t().Prompt("t", 2, 32);
  world_.t().Put(cold);
  world_.t().Put(warm);
  world_.Fill();
  Use(warm);
  const TestPrompt hot = world_.t().Prompt("t", 3, 8);
  world_.t().Put(hot);
  Use(hot);
  world_.Fill();
  EXPECT_EQ(OnDevice(hot), 8u);
  EXPECT_EQ(OnDevice(warm), 32u);
  EXPECT_EQ(OnDevice(cold), 24u);
  // The deepest left, so no prompt has a hole.
  const auto first = world_.store().PinOnDevice("t", world_.t().fingerprint(), cold.keys[23]);
  EXPECT_TRUE(first.pin);
}

TEST_F(DeviceFillerTest, WhatIsUsedDisplacesNothingThatWasUsedSince) {
  const TestPrompt hot = world_.t().Prompt("t", 1, kDeviceBlocks);
  world_.t().Put(hot);
  world_.Fill();
  const TestPrompt warm = world_.t().Prompt("t", 2, 8);
  world_.t().Put(warm);
  Use(warm);
  Use(hot);
  world_.Fill();
  EXPECT_EQ(OnDevice(hot), kDeviceBlocks);
  EXPECT_EQ(OnDevice(warm), 0u);
}

TEST_F(DeviceFillerTest, UseOfABlockBringsWhatIsBeforeItFirst) {
  const TestPrompt prompt = world_.t().Prompt("t", 1, kDeviceBlocks);
  const TestPrompt branch = world_.t().Branch(prompt, 4, 9, 4);
  world_.t().Put(world_.t().Prompt("t", 7, kDeviceBlocks));
  world_.Fill();  // The device is full of others.
  world_.t().Put(branch);
  world_.Fill();
  EXPECT_EQ(OnDevice(branch), 0u);
  // Only the last block is used, by a lookup of it alone.
  LookupQuery query;
  query.prompts.push_back({.keys = {branch.keys.back()}});
  query.touch = true;
  world_.store().Lookup("t", world_.t().fingerprint(), query);
  world_.Fill();
  // What was not used itself does not displace: without it the block has no place.
  EXPECT_EQ(OnDevice(branch), 0u);
  Use(branch);
  world_.Fill();
  EXPECT_EQ(OnDevice(branch), 8u);
}

TEST_F(DeviceFillerTest, BlocksOfAnotherSizeGetWholeSegments) {
  const TestPrompt small = world_.t().Prompt("t", 1, kDeviceBlocks);
  world_.t().Put(small);
  world_.Fill();
  const Fingerprint small_shape = world_.t().fingerprint();
  world_.t().Register(TestStore::Shape(4096, "large"));
  const TestPrompt large = world_.t().Prompt("t", 2, 3);
  world_.t().Put(large);
  Use(large);
  world_.Fill();
  EXPECT_EQ(OnDevice(large), 3u);
  world_.t().Use(small_shape);
  EXPECT_EQ(OnDevice(small), kDeviceBlocks - 12);
}

TEST_F(DeviceFillerTest, BlockThatWasRemovedOnItsWayIsNotFound) {
  const TestPrompt prompt = world_.t().Prompt("t", 1, 2);
  world_.t().Put(prompt);
  std::vector<UploadTask> tasks = world_.store().TakeUploads(10, 1 << 20);
  ASSERT_EQ(tasks.size(), 2u);
  ASSERT_TRUE(world_.store().Delete("t", world_.t().fingerprint(), {prompt.keys[1]}).ok());
  world_.store().FinishUploads({tasks[0].id, tasks[1].id}, absl::OkStatus());
  tasks.clear();
  EXPECT_EQ(OnDevice(prompt), 1u);
  EXPECT_EQ(world_.store().Status().device_used_bytes, DiskWorld::kBlockBytes);
  EXPECT_EQ(world_.counters().uploads_failed.load(), 1u);
}

TEST_F(DeviceFillerTest, HostSlotStaysWhileItIsCopied) {
  const TestPrompt prompt = world_.t().Prompt("t", 1, 1);
  world_.t().Put(prompt);
  std::vector<UploadTask> tasks = world_.store().TakeUploads(10, 1 << 20);
  ASSERT_EQ(tasks.size(), 1u);
  world_.FillHost(100);
  EXPECT_THAT(world_.t().States(prompt), Each(BlockState::kHost));
  world_.store().FinishUploads({tasks[0].id}, absl::OkStatus());
}

TEST_F(DeviceFillerTest, CopyThatFailsLeavesTheBlockInHostMemory) {
  const TestPrompt prompt = world_.t().Prompt("t", 1, 4);
  world_.t().Put(prompt);
  world_.device().Fail("fell off the bus");
  world_.Fill();
  EXPECT_EQ(OnDevice(prompt), 0u);
  EXPECT_THAT(world_.t().States(prompt), Each(BlockState::kHost));
  EXPECT_TRUE(world_.store().Status().device_failed);
  EXPECT_EQ(world_.store().Status().device_used_bytes, 0u);
}

TEST_F(DeviceFillerTest, QueueIsBoundedAndForgetsWhatWaitsLongest) {
  DiskWorldOptions options = WithDevice();
  options.store.device.wanted_blocks_max = 4;
  DiskWorld world(options);
  const TestPrompt first = world.t().Prompt("t", 1, 4);
  const TestPrompt second = world.t().Prompt("t", 2, 4);
  world.t().Put(first);
  world.t().Put(second);
  EXPECT_EQ(world.store().Status().wanted_blocks, 4u);
  EXPECT_EQ(world.counters().uploads_shed.load(), 4u);
  world.Fill();
  EXPECT_TRUE(world.store().PinOnDevice("t", world.t().fingerprint(), second.keys[3]).pin);
  EXPECT_FALSE(world.store().PinOnDevice("t", world.t().fingerprint(), first.keys[0]).pin);
}

TEST_F(DeviceFillerTest, IndexOfTheDeviceIsBounded) {
  DiskWorldOptions options = WithDevice();
  options.store.device.index_bytes_max = 16'000;
  DiskWorld world(options);
  world.t().Put(world.t().Prompt("t", 1, 40));
  world.Fill();
  EXPECT_GT(world.store().Status().device_blocks, 4u);
  EXPECT_LT(world.store().Status().device_blocks, 30u);
  EXPECT_LE(world.store().Status().device_index_bytes, 16'000u);
  EXPECT_TRUE(world.Audit().ok()) << world.Audit();
}

}  // namespace
}  // namespace cairn::node
