// Blocks that are only on an emulated device, on their way back to host memory: what is read is
// what was written, or a miss, in whatever order the device does its work, and whatever happens to
// it.
#include <gmock/gmock.h>

#include "tests/cache_node/spill/disk_world.h"

namespace cairn::node {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

DiskWorldOptions WithDevice(kernels::EmulatedDevice::Options device = {}) {
  DiskWorldOptions options;
  options.device_bytes = 64 * DiskWorld::kBlockBytes;
  options.device = device;
  return options;
}

class DeviceLoaderTest : public ::testing::Test {
 protected:
  DeviceLoaderTest() : world_(WithDevice()) {}
  ~DeviceLoaderTest() override { EXPECT_TRUE(world_.Audit().ok()) << world_.Audit(); }

  DiskWorld world_;
};

TEST_F(DeviceLoaderTest, EvictedBlockIsPresentOnTheDeviceAndLoadsBack) {
  const TestPrompt prompt = world_.PutOnDevice("t", 1, 4);
  EXPECT_EQ(world_.t().Present(prompt), 4u);
  EXPECT_THAT(world_.t().States(prompt), Each(BlockState::kDevice));
  const LookupAnswer answer = world_.Promote(prompt);
  EXPECT_EQ(answer.prompts[0].blocks[0].state, BlockState::kPending);
  EXPECT_GT(world_.t().device_load_signals.load(), 0u);
  world_.LoadFromDevice();
  EXPECT_THAT(world_.t().States(prompt), Each(BlockState::kHost));
  EXPECT_TRUE(world_.Intact(prompt));
  EXPECT_EQ(world_.counters().device_loaded_blocks.load(), 4u);
  EXPECT_EQ(world_.counters().loaded_blocks.load(), 0u);
}

TEST_F(DeviceLoaderTest, HitOfTheDeviceIsCountedAsSuchUntilTheBlockIsUsed) {
  const TestPrompt prompt = world_.PutOnDevice("t", 1, 4);
  const uint64_t before = world_.counters().hit_tokens_device.load();
  world_.Promote(prompt);
  world_.LoadFromDevice();
  const LookupAnswer answer = world_.LeaseAll(prompt, /*hold_pending=*/false);
  EXPECT_TRUE(answer.prompts[0].blocks[0].from_device);
  EXPECT_FALSE(answer.prompts[0].blocks[0].from_disk);
  EXPECT_EQ(world_.counters().hit_tokens_device.load() - before, 4u * TestStore::kBlockTokens);
  EXPECT_EQ(world_.counters().hit_tokens_disk.load(), 0u);
  ASSERT_TRUE(world_.store().EndLease("t", *answer.lease, 0, {4}).ok());
  EXPECT_FALSE(world_.t().Lookup("t", prompt).prompts[0].blocks[0].from_device);
}

TEST_F(DeviceLoaderTest, DeviceComesBeforeTheDisk) {
  const TestPrompt prompt = world_.t().Prompt("t", 1, 4);
  world_.t().Put(prompt);
  world_.Spill();
  world_.Fill();
  world_.FillHost(100);
  EXPECT_THAT(world_.t().States(prompt), Each(BlockState::kDevice));
  world_.Promote(prompt);
  EXPECT_EQ(world_.Load(), 0u);
  world_.LoadFromDevice();
  EXPECT_TRUE(world_.Intact(prompt));
}

TEST_F(DeviceLoaderTest, DamagedCopyIsQuarantinedAndNeverServed) {
  const TestPrompt prompt = world_.PutOnDevice("t", 1, 3);
  world_.DamageOnDevice("t", prompt.keys[1]);
  world_.Promote(prompt);
  world_.LoadFromDevice();
  EXPECT_THAT(world_.t().States(prompt),
              ElementsAre(BlockState::kHost, BlockState::kQuarantined, BlockState::kHost));
  EXPECT_EQ(world_.counters().device_loads_damaged.load(), 1u);
  EXPECT_EQ(world_.t().Present(prompt), 1u);
  EXPECT_EQ(world_.t().Put(prompt), 1u);
  EXPECT_TRUE(world_.Intact(prompt));
}

TEST_F(DeviceLoaderTest, DamagedCopyOfABlockOnDiskIsLoadedFromThere) {
  const TestPrompt prompt = world_.t().Prompt("t", 1, 2);
  world_.t().Put(prompt);
  world_.Spill();
  world_.Fill();
  world_.FillHost(100);
  world_.DamageOnDevice("t", prompt.keys[0]);
  LookupAnswer answer = world_.LeaseAll(prompt, /*hold_pending=*/true);
  world_.LoadFromDevice();
  EXPECT_EQ(world_.t().States(prompt)[0], BlockState::kPending);
  EXPECT_EQ(world_.Load(), 1u);
  answer = world_.LeaseAll(prompt, /*hold_pending=*/false, answer.lease);
  EXPECT_EQ(answer.prompts[0].leased, 2u);
  EXPECT_TRUE(world_.Intact(prompt));
  ASSERT_TRUE(world_.store().EndLease("t", *answer.lease, 0, {2}).ok());
}

TEST_F(DeviceLoaderTest, DeviceThatFailsIsMissesAndTheDiskServes) {
  const TestPrompt both = world_.t().Prompt("t", 1, 2);
  world_.t().Put(both);
  world_.Spill();
  const TestPrompt only = world_.t().Prompt("t", 2, 2);
  world_.t().Put(only);
  world_.Fill();
  world_.FillHost(100);
  EXPECT_THAT(world_.t().States(only), Each(BlockState::kDevice));
  const LookupAnswer waiting = world_.Promote(both);
  world_.Promote(only);
  world_.device().Fail("fell off the bus");
  world_.LoadFromDevice();
  world_.Fill();  // The filler tells the store.
  EXPECT_THAT(world_.t().States(only), Each(BlockState::kEvicted));
  EXPECT_EQ(world_.Load(), 2u);
  EXPECT_THAT(world_.t().States(both), Each(BlockState::kHost));
  EXPECT_TRUE(world_.Intact(both));
  EXPECT_EQ(world_.t().Put(only), 2u);
  EXPECT_EQ(world_.store().Status().device_blocks, 0u);
  EXPECT_EQ(world_.store().Status().device_used_bytes, 0u);
}

TEST_F(DeviceLoaderTest, LeaseThatWaitsForTheDeviceIsCutWhereItFails) {
  const TestPrompt prompt = world_.PutOnDevice("t", 1, 4);
  LookupAnswer answer = world_.LeaseAll(prompt, /*hold_pending=*/true);
  EXPECT_EQ(answer.prompts[0].leased, 4u);
  world_.device().Fail("fell off the bus");
  world_.LoadFromDevice();
  answer = world_.LeaseAll(prompt, /*hold_pending=*/false, answer.lease);
  EXPECT_EQ(answer.prompts[0].leased, 0u);
  EXPECT_FALSE(answer.lease.has_value());
}

TEST_F(DeviceLoaderTest, OtherTokensUnderAKeyOnTheDeviceAreAMiss) {
  TestPrompt prompt = world_.PutOnDevice("t", 1, 2);
  prompt.tokens[0] ^= 1;
  EXPECT_EQ(world_.t().Lookup("t", prompt).prompts[0].blocks[0].state, BlockState::kTokensDiffer);
  EXPECT_EQ(world_.t().Present(prompt), 0u);
}

TEST_F(DeviceLoaderTest, ChildrenCanBeWrittenUnderAParentThatIsOnlyOnTheDevice) {
  const TestPrompt prompt = world_.PutOnDevice("t", 1, 4);
  const TestPrompt longer = world_.t().Branch(prompt, 4, 9, 2);
  EXPECT_EQ(world_.t().Put(longer), 2u);
  EXPECT_THAT(world_.t().States(longer),
              ElementsAre(BlockState::kDevice, BlockState::kDevice, BlockState::kDevice,
                          BlockState::kDevice, BlockState::kHost, BlockState::kHost));
  EXPECT_EQ(world_.t().Present(longer), 6u);
}

TEST_F(DeviceLoaderTest, TokensAndProvenanceComeBackWithTheBlock) {
  world_.t().provenance = {.writer = 0x1234567890abcdef, .written_unix_ms = 1'700'000'000'123};
  const TestPrompt prompt = world_.PutOnDevice("t", 1, 1);
  world_.Promote(prompt);
  world_.LoadFromDevice();
  const BlockRecords records =
      world_.store().DescribeBlocks("t", world_.t().fingerprint(), prompt.keys, 1000);
  EXPECT_EQ(records.blocks[0].tokens, prompt.tokens);
  EXPECT_EQ(records.blocks[0].provenance.writer, 0x1234567890abcdefu);
  EXPECT_EQ(records.blocks[0].provenance.written_unix_ms, 1'700'000'000'123);
}

TEST_F(DeviceLoaderTest, OptionalPartThatIsNotThereDoesNotComeBack) {
  world_.t().Register(TestStore::ManySegments(2, 1, /*optional_group=*/true), "t", "parts");
  const TestPrompt prompt = world_.t().Prompt("t", 5, 1);
  const auto reserved = world_.t().Reserve(prompt);
  ASSERT_TRUE(world_.t().Write("t", *reserved->token, prompt.keys[0], 0, {0, 0, 0}, 2).ok());
  std::vector<SegmentRun> runs = world_.t().RunsOf(prompt.keys[0], 0);
  runs.resize(1);
  ASSERT_TRUE(world_.store().Commit("t", *reserved->token, runs).ok());
  ASSERT_TRUE(world_.store().Abort("t", *reserved->token).ok());
  world_.Fill();
  const auto copy = world_.store().PinOnDevice("t", world_.t().fingerprint(), prompt.keys[0]);
  ASSERT_TRUE(copy.pin);
  EXPECT_NE(copy.pin.SegmentAddress(0), nullptr);
  EXPECT_EQ(copy.pin.SegmentAddress(2), nullptr);
}

TEST(DeviceLoaderOrderTest, BytesAreRightInWhateverOrderTheDeviceWorks) {
  using Order = kernels::EmulatedDevice::Order;
  for (const Order order : {Order::kLazy, Order::kEager, Order::kRandom}) {
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      DiskWorld world(WithDevice({.order = order, .seed = seed, .pending_polls = 2}));
      for (uint32_t round = 1; round <= 6; ++round) {
        const TestPrompt prompt = world.t().Prompt("t", round, 24);
        world.t().Put(prompt);
        world.t().Lookup("t", prompt, /*touch=*/true);
        world.Fill();
        world.FillHost(1000 * round);
        ASSERT_EQ(world.Count(prompt, BlockState::kDevice), 24u);
        world.Promote(prompt);
        world.LoadFromDevice();
        ASSERT_TRUE(world.Intact(prompt));
      }
      ASSERT_TRUE(world.Audit().ok()) << world.Audit();
    }
  }
}

}  // namespace
}  // namespace cairn::node
