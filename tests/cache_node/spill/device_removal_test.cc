// Whoever removes blocks removes what an emulated device holds of them, in whatever other tiers
// they are; a pin on the device outlives that, its slot stays charged, and is not reused before.
#include <gmock/gmock.h>

#include "cache_node/store/scope_digest.h"
#include "tests/cache_node/spill/disk_world.h"
#include "tests/cache_node/spill/feed_watcher.h"

namespace cairn::node {
namespace {

using ::testing::Each;

class DeviceRemovalTest : public ::testing::Test {
 protected:
  DeviceRemovalTest() : world_(WithDevice()) {}
  ~DeviceRemovalTest() override { EXPECT_TRUE(world_.Audit().ok()) << world_.Audit(); }

  static DiskWorldOptions WithDevice() {
    DiskWorldOptions options;
    options.device_bytes = 64 * DiskWorld::kBlockBytes;
    return options;
  }

  DevicePin PinOf(const TestPrompt& prompt, size_t block) {
    return std::move(world_.store()
                         .PinOnDevice(prompt.tenant(), world_.t().fingerprint(), prompt.keys[block])
                         .pin);
  }
  StoreStatus Status() { return world_.store().Status(); }

  // One in all tiers, one on device and disk, and one on the device alone.
  std::vector<TestPrompt> InAllWays(const std::string& salt = "") {
    std::vector<TestPrompt> prompts;
    prompts.push_back(world_.t().Prompt("t", 1, 2, salt));
    world_.t().Put(prompts[0]);
    world_.Fill();
    world_.Spill();
    world_.FillHost(100);
    prompts.push_back(world_.PutOnDevice("t", 2, 2, salt));
    prompts.push_back(world_.t().Prompt("t", 3, 2, salt));
    world_.t().Put(prompts[2]);
    world_.Fill();
    world_.Spill();
    EXPECT_THAT(world_.t().States(prompts[0]), Each(BlockState::kDevice));
    EXPECT_THAT(world_.t().States(prompts[1]), Each(BlockState::kDevice));
    EXPECT_THAT(world_.t().States(prompts[2]), Each(BlockState::kHost));
    return prompts;
  }

  void ExpectGone(const std::vector<TestPrompt>& prompts) {
    for (const TestPrompt& prompt : prompts) {
      EXPECT_EQ(world_.t().Present(prompt), 0u);
      for (size_t i = 0; i < prompt.keys.size(); ++i) EXPECT_FALSE(PinOf(prompt, i));
    }
  }

  DiskWorld world_;
};

TEST_F(DeviceRemovalTest, DeletedBlocksAreGoneFromAllTiers) {
  FeedWatcher watcher(&world_.store());
  const std::vector<TestPrompt> prompts = InAllWays();
  watcher.Pull();
  for (const TestPrompt& prompt : prompts) {
    const auto removed = world_.store().Delete("t", world_.t().fingerprint(), prompt.keys);
    ASSERT_TRUE(removed.ok()) << removed.status();
    EXPECT_THAT(*removed, Each(true));
    EXPECT_THAT(world_.t().States(prompt), Each(BlockState::kDeleted));
  }
  ExpectGone(prompts);
  watcher.Pull();
  for (const TestPrompt& prompt : prompts) {
    EXPECT_EQ(watcher.TiersOf(prompt.keys[0]), 0);
    EXPECT_EQ(watcher.ReasonOf(prompt.keys[0]), RemovalReason::kDeleted);
  }
}

TEST_F(DeviceRemovalTest, ClearedScopeIsGoneFromAllTiersAndOthersStay) {
  const TestPrompt other = world_.t().Prompt("t", 9, 2);
  world_.t().Put(other);
  world_.Fill();
  const std::vector<TestPrompt> prompts = InAllWays("salt");
  const auto removed =
      world_.store().ClearScope("t", world_.t().fingerprint(), ScopeDigest(prompts[0].scope));
  ASSERT_TRUE(removed.ok());
  EXPECT_EQ(removed->blocks, 6u);
  ExpectGone(prompts);
  EXPECT_TRUE(PinOf(other, 1));
}

TEST_F(DeviceRemovalTest, RetiredNamespaceIsGoneFromAllTiers) {
  const std::vector<TestPrompt> prompts = InAllWays();
  const Fingerprint fingerprint = world_.t().fingerprint();
  ASSERT_TRUE(world_.store().RetireNamespace(fingerprint).ok());
  EXPECT_EQ(Status().device_blocks, 0u);
  EXPECT_EQ(Status().device_used_bytes, 0u);
  world_.t().Register(TestStore::Shape(DiskWorld::kBlockBytes));
  ExpectGone(prompts);
}

TEST_F(DeviceRemovalTest, PurgedWriterIsGoneFromTheDevice) {
  world_.t().provenance = {.writer = 7, .written_unix_ms = 1'000};
  const TestPrompt bad = world_.t().Prompt("t", 1, 2);
  world_.t().Put(bad);
  world_.t().provenance = {.writer = 8, .written_unix_ms = 1'000};
  const TestPrompt after = world_.t().Branch(bad, 2, 5, 2);
  world_.t().Put(after);
  const TestPrompt good = world_.t().Prompt("t", 3, 2);
  world_.t().Put(good);
  world_.Fill();
  world_.t().provenance = {};
  world_.FillHost(100);
  EXPECT_THAT(world_.t().States(after), Each(BlockState::kDevice));
  const auto removed = world_.store().PurgeWriter(7, 0, 2'000);
  ASSERT_TRUE(removed.ok()) << removed.status();
  EXPECT_EQ(removed->blocks, 4u);
  ExpectGone({bad, after});
  EXPECT_THAT(world_.t().States(good), Each(BlockState::kDevice));
}

TEST_F(DeviceRemovalTest, ReportedBlockIsGoneFromTheDeviceToo) {
  const TestPrompt prompt = world_.t().Prompt("t", 1, 1);
  world_.t().Put(prompt);
  world_.Fill();
  {
    const BlockPin pin = world_.t().Pin("t", prompt.keys[0]);
    const_cast<uint8_t&>(pin.bytes()[3]) ^= 1;
  }
  const auto bad =
      world_.store().ReportMismatch("t", world_.t().fingerprint(), prompt.keys[0], {0, 0, 0});
  ASSERT_TRUE(bad.ok());
  EXPECT_TRUE(*bad);
  EXPECT_FALSE(PinOf(prompt, 0));
}

TEST_F(DeviceRemovalTest, BlockThatExpiresLeavesTheDevice) {
  const int64_t now = absl::ToUnixMillis(world_.t().clock.WallNow());
  world_.t().retention.expires_unix_ms = now + 60'000;
  const TestPrompt prompt = world_.t().Prompt("t", 1, 2);
  world_.t().Put(prompt);
  world_.t().retention = {};
  world_.Fill();
  world_.FillHost(100);
  EXPECT_THAT(world_.t().States(prompt), Each(BlockState::kDevice));
  world_.store().EndRetention(absl::FromUnixMillis(now + 59'999));
  EXPECT_THAT(world_.t().States(prompt), Each(BlockState::kDevice));
  world_.store().EndRetention(absl::FromUnixMillis(now + 60'000));
  EXPECT_THAT(world_.t().States(prompt), Each(BlockState::kDeleted));
  EXPECT_FALSE(PinOf(prompt, 0));
}

TEST_F(DeviceRemovalTest, PinKeepsSlotAndChargeOfADeletedBlock) {
  const TestPrompt prompt = world_.PutOnDevice("t", 1, 1);
  const uint64_t used = Status().device_used_bytes;
  DevicePin pin = PinOf(prompt, 0);
  const auto* address = pin.address();
  ASSERT_TRUE(world_.store().Delete("t", world_.t().fingerprint(), prompt.keys).ok());
  EXPECT_FALSE(PinOf(prompt, 0));
  EXPECT_EQ(Status().device_used_bytes, used);
  EXPECT_EQ(world_.store().Tenants()[0].device_bytes, used);
  // Others come and go; none gets the slot.
  for (uint32_t seed = 50; seed < 54; ++seed) {
    const TestPrompt other = world_.t().Prompt("t", seed, 32);
    world_.t().Put(other);
    world_.t().Lookup("t", other, /*touch=*/true);
    world_.Fill();
  }
  const std::vector<uint8_t> bytes = world_.t().Bytes(prompt.keys[0], {0, 0, 0}, 1);
  EXPECT_EQ(std::memcmp(address, bytes.data(), bytes.size()), 0);
  const uint64_t before = Status().device_used_bytes;
  pin = DevicePin();
  EXPECT_EQ(Status().device_used_bytes, before - DiskWorld::kBlockBytes);
}

TEST_F(DeviceRemovalTest, PinnedBlockIsNoVictim) {
  const TestPrompt cold = world_.PutOnDevice("t", 1, 1);
  const DevicePin pin = PinOf(cold, 0);
  for (uint32_t seed = 50; seed < 54; ++seed) {
    const TestPrompt hot = world_.t().Prompt("t", seed, 63);
    world_.t().Put(hot);
    world_.t().Lookup("t", hot, /*touch=*/true);
    world_.Fill();
  }
  EXPECT_EQ(world_.t().States(cold)[0], BlockState::kDevice);
}

TEST_F(DeviceRemovalTest, RetirementReportsBytesThatAPinHolds) {
  const TestPrompt prompt = world_.PutOnDevice("t", 1, 2);
  const DevicePin pin = PinOf(prompt, 0);
  const auto removed = world_.store().RetireNamespace(world_.t().fingerprint());
  ASSERT_TRUE(removed.ok());
  EXPECT_EQ(removed->pinned_bytes, DiskWorld::kBlockBytes);
}

TEST_F(DeviceRemovalTest, NoTenantPinsAnothersBlock) {
  const TestPrompt prompt = world_.PutOnDevice("t", 1, 1);
  EXPECT_FALSE(world_.store().PinOnDevice("u", world_.t().fingerprint(), prompt.keys[0]).pin);
  const TestPrompt everyones = world_.PutOnDevice("public", 2, 1);
  EXPECT_TRUE(world_.store().PinOnDevice("u", world_.t().fingerprint(), everyones.keys[0]).pin);
}

TEST_F(DeviceRemovalTest, KillEmptiesTheDeviceAndTheDiskIsThere) {
  const std::vector<TestPrompt> prompts = InAllWays();
  world_.Restart();
  EXPECT_THAT(world_.t().States(prompts[0]), Each(BlockState::kDisk));
  EXPECT_EQ(world_.t().Present(prompts[1]), 0u);
  EXPECT_EQ(Status().device_blocks, 0u);
}

}  // namespace
}  // namespace cairn::node
