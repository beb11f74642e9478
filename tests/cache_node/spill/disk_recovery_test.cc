// Processes die and others find their disk: what is there again, what stays gone, and what is said
// while blocks are still being found.
#include "cache_node/spill/disk_recovery.h"

#include <gmock/gmock.h>

#include "cache_node/store/scope_digest.h"
#include "tests/cache_node/spill/disk_world.h"

namespace cairn::node {
namespace {

using testing::DiskCall;
using ::testing::Each;

TEST(DiskRecoveryTest, BlocksAreThereAgainBeforeAnybodyRegisters) {
  DiskWorld world;
  const TestPrompt mine = world.PutOnDisk("t", 1, 5, "salt");
  const TestPrompt other = world.PutOnDisk("u", 2, 5);
  world.Restart();
  EXPECT_THAT(world.t().States(mine), Each(BlockState::kDisk));
  EXPECT_EQ(world.t().PresentFor("u", mine), 0u);
  EXPECT_EQ(world.t().PresentFor("t", other), 0u);
  world.Promote(mine);
  world.Load();
  EXPECT_TRUE(world.Intact(mine));
  EXPECT_TRUE(world.Audit().ok()) << world.Audit();
}

TEST(DiskRecoveryTest, TheStoreServesMeanwhileAndSaysThatItIsRecovering) {
  DiskWorld world;
  const TestPrompt before = world.PutOnDisk("t", 1, 5);
  world.RestartBeforeRecovery();
  EXPECT_TRUE(world.store().Status().recovering);
  EXPECT_EQ(world.t().Present(before), 0u);
  const TestPrompt now = world.t().Prompt("t", 2, 3);
  EXPECT_EQ(world.t().Put(now), 3u);
  world.Spill();
  world.Recover();
  EXPECT_FALSE(world.store().Status().recovering);
  EXPECT_EQ(world.t().Present(before), 5u);
  EXPECT_EQ(world.t().Present(now), 3u);
  EXPECT_TRUE(world.Audit().ok()) << world.Audit();
  world.Restart();
  EXPECT_EQ(world.t().Present(before), 5u);
  EXPECT_EQ(world.t().Present(now), 3u);
}

TEST(DiskRecoveryTest, ABlockWrittenAnewMeanwhileIsInBothTiers) {
  DiskWorld world;
  const TestPrompt prompt = world.PutOnDisk("t", 1, 3);
  world.RestartBeforeRecovery();
  EXPECT_EQ(world.t().Put(prompt), 3u);
  world.Recover();
  EXPECT_THAT(world.t().States(prompt), Each(BlockState::kHost));
  EXPECT_EQ(world.store().Status().spill_queue_blocks, 0u);
  EXPECT_TRUE(world.Audit().ok()) << world.Audit();
  world.FillHost(100);
  EXPECT_THAT(world.t().States(prompt), Each(BlockState::kDisk));
}

TEST(DiskRecoveryTest, EpochsRiseOverRestartsAndWhatWasRetiredStaysGone) {
  DiskWorld world;
  const Namespace fields = TestStore::Shape(DiskWorld::kBlockBytes);
  for (uint64_t epoch = 1; epoch <= 3; ++epoch) {
    const TestPrompt prompt = world.PutOnDisk("t", static_cast<uint32_t>(epoch), 3);
    const auto retired = world.store().RetireNamespace(world.t().fingerprint());
    ASSERT_TRUE(retired.ok());
    EXPECT_EQ(retired->epoch, epoch);
    world.RestartBeforeRecovery();
    EXPECT_EQ(world.store().FindNamespace(world.t().fingerprint()), nullptr);
    world.t().Register(fields);
    world.Recover();
    EXPECT_EQ(world.t().Present(prompt), 0u);
    EXPECT_TRUE(world.Audit().ok()) << world.Audit();
  }
}

// The retirement's fence took the name along; that it was saved before says nothing any more.
TEST(DiskRecoveryTest, ANameThatWasRetiredAndRegisteredAnewWhileItWasSavedIsSavedAgain) {
  DiskWorld world;
  const std::vector<NamespaceTask> tasks = world.store().UnsavedNamespaces(10);
  ASSERT_EQ(tasks.size(), 1u);
  ASSERT_TRUE(world.tier()->PutNamespace(tasks[0].known).ok());
  ASSERT_TRUE(world.store().RetireNamespace(world.t().fingerprint()).ok());
  world.t().Register(TestStore::Shape(DiskWorld::kBlockBytes));
  EXPECT_FALSE(world.store().NamespaceSaved(tasks[0]).has_value());
  const TestPrompt prompt = world.PutOnDisk("t", 1, 3);
  world.Restart();
  EXPECT_EQ(world.t().Present(prompt), 3u);
}

TEST(DiskRecoveryTest, WhatIsClearedBeforeItsBlocksWereFoundStaysGone) {
  DiskWorld world;
  const TestPrompt salted = world.PutOnDisk("t", 1, 3, "salt");
  const TestPrompt plain = world.PutOnDisk("t", 2, 3);
  world.RestartBeforeRecovery();
  ASSERT_TRUE(
      world.store().ClearScope("t", world.t().fingerprint(), ScopeDigest(salted.scope)).ok());
  world.Recover();
  EXPECT_EQ(world.t().Present(salted), 0u);
  EXPECT_EQ(world.t().Present(plain), 3u);
  EXPECT_EQ(world.t().Put(salted), 3u);
  world.Spill();
  world.Restart();
  EXPECT_EQ(world.t().Present(salted), 3u);
}

TEST(DiskRecoveryTest, WhatIsRetiredBeforeItsBlocksWereFoundStaysGone) {
  DiskWorld world;
  const TestPrompt prompt = world.PutOnDisk("t", 1, 3);
  world.RestartBeforeRecovery();
  ASSERT_TRUE(world.store().RetireNamespace(world.t().fingerprint()).ok());
  world.t().Register(TestStore::Shape(DiskWorld::kBlockBytes));
  world.Recover();
  EXPECT_EQ(world.t().Present(prompt), 0u);
}

TEST(DiskRecoveryTest, ADeleteBeforeAllWasFoundIsRefused) {
  DiskWorld world;
  const TestPrompt prompt = world.PutOnDisk("t", 1, 3);
  world.RestartBeforeRecovery();
  const auto early = world.store().Delete("t", world.t().fingerprint(), prompt.keys);
  EXPECT_TRUE(absl::IsUnavailable(early.status())) << early.status();
  world.Recover();
  EXPECT_TRUE(world.store().Delete("t", world.t().fingerprint(), prompt.keys).ok());
  world.Restart();
  EXPECT_EQ(world.t().Present(prompt), 0u);
}

TEST(DiskRecoveryTest, WithoutItsLedgerTheDiskIsNotUsedAndNothingIsPromised) {
  testing::MemoryDiskTier disk(1 << 20);
  TierLedger ledger(&disk);
  TestStore t({.store = {}, .pool_bytes = 16 * 16384, .ledger = &ledger});
  disk.Fail(DiskCall::kReadLedger, absl::UnavailableError("EIO"));
  EXPECT_FALSE(DiskRecovery(&disk, t.store.get()).Open().ok());
  t.Register(TestStore::Shape(1024));
  EXPECT_EQ(t.Put(t.Prompt("t", 1, 3)), 3u);
  EXPECT_TRUE(t.store->TakeSpills(10, 1 << 20).empty());
  EXPECT_TRUE(absl::IsUnavailable(t.store->RetireNamespace(t.fingerprint()).status()));
  EXPECT_TRUE(absl::IsUnavailable(t.store->Delete("t", t.fingerprint(), {}).status()));
  EXPECT_TRUE(DiskRecovery(&disk, t.store.get()).Open().ok());
  EXPECT_EQ(t.store->TakeSpills(10, 1 << 20).size(), 3u);
}

TEST(DiskRecoveryTest, AnEpochOfALedgerThatIsReadLateStillCounts) {
  testing::MemoryDiskTier disk(1 << 20);
  TierLedger ledger(&disk);
  for (uint64_t epoch = 1; epoch <= 2; ++epoch) {
    TestStore t({.store = {}, .pool_bytes = 16 * 16384, .ledger = &ledger});
    t.Register(TestStore::Shape(1024));
    EXPECT_EQ(t.Put(t.Prompt("t", 1, 3)), 3u);
    ASSERT_TRUE(DiskRecovery(&disk, t.store.get()).Open().ok());
    const auto retired = t.store->RetireNamespace(t.fingerprint());
    ASSERT_TRUE(retired.ok());
    EXPECT_EQ(retired->epoch, epoch);
    EXPECT_TRUE(t.store->Audit().ok()) << t.store->Audit();
    disk.Kill();
  }
}

TEST(DiskRecoveryTest, BlocksOfAnotherLayoutOrOfNobodyAreIgnored) {
  DiskWorld world;
  const TestPrompt prompt = world.PutOnDisk("t", 1, 2);
  DiskTier::RecoveredFile file;
  file.file = 900;
  file.scopes.push_back({.fingerprint = world.t().fingerprint(),
                         .tenant = "t",
                         .adapter = "",
                         .salt = "",
                         .scope_digest = ScopeDigest(prompt.scope)});
  file.scopes.push_back(file.scopes[0]);
  file.scopes[1].fingerprint.bytes[0] ^= 1;
  world.RestartBeforeRecovery();
  const uint64_t ignored = world.counters().recovery_ignored;
  DiskBlock block;
  block.key.bytes[3] = 1;
  block.sequence = 1;
  block.payload_bytes = DiskWorld::kBlockBytes + 64;
  file.entries.push_back({0, block, false});
  block.payload_bytes = DiskWorld::kBlockBytes;
  file.entries.push_back({1, block, false});
  file.entries.push_back({7, block, false});
  file.entries.push_back({0, block, true});
  world.store().AddRecovered(file);
  EXPECT_EQ(world.counters().recovery_ignored, ignored + 4);
  EXPECT_EQ(world.store().Status().disk_blocks, 0u);
  world.Recover();
  EXPECT_EQ(world.t().Present(prompt), 2u);
  EXPECT_TRUE(world.Audit().ok()) << world.Audit();
}

// A kill between the two left a block in two files, both whole: what the newer says counts.
class TwiceOnDiskTest : public ::testing::Test {
 protected:
  // Ends of the older and the newer record; 0: never.
  void Find(int64_t older_unix_ms, int64_t newer_unix_ms) {
    prompt_ = world_.t().Prompt("t", 1, 1);
    world_.RestartBeforeRecovery();
    DiskTier::RecoveredFile file;
    file.scopes.push_back({.fingerprint = world_.t().fingerprint(),
                           .tenant = "t",
                           .adapter = "",
                           .salt = "",
                           .scope_digest = ScopeDigest(prompt_.scope)});
    DiskBlock block;
    block.key = prompt_.keys[0];
    block.payload_bytes = DiskWorld::kBlockBytes;
    for (uint64_t sequence = 1; sequence <= 2; ++sequence) {
      file.file = 900 + sequence;
      block.sequence = sequence;
      block.expires_unix_ms = sequence == 1 ? older_unix_ms : newer_unix_ms;
      file.entries = {{0, block, false}};
      world_.store().AddRecovered(file);
    }
    world_.Recover();
    ASSERT_EQ(world_.t().Present(prompt_), 1u);
    ASSERT_EQ(world_.store().Status().disk_blocks, 2u);  // With the one of the test.
  }
  int64_t UnixMsIn(absl::Duration duration) {
    return absl::ToUnixMillis(world_.t().clock.WallNow() + duration);
  }
  uint32_t PresentAfter(absl::Duration duration) {
    world_.t().Advance(duration);
    world_.store().EndRetention(world_.t().clock.WallNow());
    EXPECT_TRUE(world_.Audit().ok()) << world_.Audit();
    return world_.t().Present(prompt_);
  }

  DiskWorld world_;
  TestPrompt prompt_;
};

TEST_F(TwiceOnDiskTest, TheEndOfTheOlderIsForgotten) {
  world_.PutOnDisk("t", 9, 1);  // So that the namespace is known to the disk.
  Find(UnixMsIn(absl::Seconds(10)), 0);
  EXPECT_EQ(PresentAfter(absl::Seconds(10)), 1u);
  EXPECT_EQ(PresentAfter(absl::Hours(10)), 1u);
}

TEST_F(TwiceOnDiskTest, TheEndOfTheNewerHolds) {
  world_.PutOnDisk("t", 9, 1);
  Find(0, UnixMsIn(absl::Seconds(10)));
  EXPECT_EQ(PresentAfter(absl::Seconds(9)), 1u);
  EXPECT_EQ(PresentAfter(absl::Seconds(1)), 0u);
}

TEST(DiskRecoveryTest, AnIndexThatIsFullFindsWhatFitsAndShedsFurtherSpills) {
  DiskWorldOptions options;
  options.store.disk.index_bytes_max = 2000;
  DiskWorld world(options);
  world.t().Put(world.t().Prompt("t", 1, 40));
  world.Spill();
  const uint64_t kept = world.store().Status().disk_blocks;
  EXPECT_GT(kept, 4u);
  EXPECT_LT(kept, 40u);
  EXPECT_GT(world.counters().spills_shed, 0u);
  EXPECT_LE(world.store().Status().disk_index_bytes, 2000u);
  EXPECT_TRUE(world.Audit().ok()) << world.Audit();
  world.Restart();
  EXPECT_GT(world.store().Status().disk_blocks, 4u);
  EXPECT_TRUE(world.Audit().ok()) << world.Audit();
}

}  // namespace
}  // namespace cairn::node
