// Blocks go to a disk in memory under the eyes of the store: which, in what order, and what is left
// when a write fails or a block is removed while it is written. Kills show what is durable.
#include <gmock/gmock.h>

#include "cache_node/store/scope_digest.h"
#include "tests/cache_node/spill/disk_world.h"

namespace cairn::node {
namespace {

using testing::DiskCall;
using ::testing::Each;
using ::testing::ElementsAre;

TEST(SpillWriterTest, WhatWasCommittedIsOnDiskAndSurvivesItsEvictionAndAKill) {
  DiskWorld world;
  const TestPrompt prompt = world.t().Prompt("t", 1, 6);
  world.t().Put(prompt);
  EXPECT_GT(world.t().spill_signals, 0u);
  world.Spill();
  EXPECT_EQ(world.store().Status().disk_blocks, 6u);
  EXPECT_THAT(world.t().States(prompt), Each(BlockState::kHost));
  world.FillHost(100);
  EXPECT_THAT(world.t().States(prompt), Each(BlockState::kDisk));
  EXPECT_EQ(world.t().Present(prompt), 6u);
  EXPECT_EQ(world.counters().demoted_blocks, 6u);
  EXPECT_EQ(world.counters().evicted_blocks, 0u);
  world.Restart();
  EXPECT_THAT(world.t().States(prompt), Each(BlockState::kDisk));
  EXPECT_TRUE(world.Audit().ok()) << world.Audit();
}

TEST(SpillWriterTest, ANamespaceIsDescribedWithItsBlocksInEachTier) {
  DiskWorld world;
  const TestPrompt prompt = world.PutOnDisk("t", 1, 6);
  ASSERT_TRUE(world.store().Delete("t", world.t().fingerprint(), {prompt.keys[5]}).ok());
  std::vector<NamespaceStatus> described = world.store().Namespaces("t");
  ASSERT_EQ(described.size(), 1u);
  EXPECT_EQ(described[0].blocks, world.store().Status().blocks);
  EXPECT_EQ(described[0].disk_blocks, 5u);
  world.t().Put(world.t().Prompt("u", 2, 3));
  world.Spill();
  EXPECT_EQ(world.store().Namespaces("t")[0].disk_blocks, world.store().Status().disk_blocks - 3);
  world.Restart();
  described = world.store().Namespaces("t");
  EXPECT_EQ(described[0].blocks, 0u);
  EXPECT_EQ(described[0].disk_blocks, world.store().Status().disk_blocks - 3);
  EXPECT_TRUE(world.Audit().ok()) << world.Audit();
}

TEST(SpillWriterTest, AFileIsFinishedWhenItsFirstBlockIsOldEnough) {
  DiskWorld world;
  world.t().Put(world.t().Prompt("t", 1, 1));
  EXPECT_TRUE(world.StepSpill());
  EXPECT_FALSE(world.StepSpill());
  EXPECT_EQ(world.store().Status().disk_blocks, 0u);
  world.t().Advance(absl::Seconds(1));
  EXPECT_TRUE(world.StepSpill());
  EXPECT_EQ(world.store().Status().disk_blocks, 1u);
}

TEST(SpillWriterTest, OnSecondTouchOnlyWhatIsUsedAgainIsWritten) {
  DiskWorldOptions options;
  options.store.disk.admission = SpillAdmission::kSecondTouch;
  DiskWorld world(options);
  const TestPrompt used = world.t().Prompt("t", 1, 3);
  world.t().Put(used);
  world.t().Put(world.t().Prompt("t", 2, 3));
  world.Spill();
  EXPECT_EQ(world.store().Status().disk_blocks, 0u);
  world.t().Lookup("t", used, /*touch=*/true);
  world.Spill();
  EXPECT_EQ(world.store().Status().disk_blocks, 3u);
  world.Restart();
  EXPECT_THAT(world.t().States(used), Each(BlockState::kDisk));
}

TEST(SpillWriterTest, AQueueThatIsFullShedsAndAParentThatWasShedGoesBeforeItsChild) {
  DiskWorldOptions options;
  options.store.disk.spill_queue_blocks_max = 1;
  DiskWorld world(options);
  const TestPrompt prompt = world.t().Prompt("t", 1, 4);
  world.t().Put(prompt);
  EXPECT_EQ(world.store().Status().spill_queue_blocks, 1u);
  EXPECT_EQ(world.counters().spills_shed, 3u);
  world.Spill();
  EXPECT_EQ(world.store().Status().disk_blocks, 1u);
  // Uses go from the deepest block up: the deepest has the only place in the queue.
  world.t().Lookup("t", prompt, /*touch=*/true);
  world.Spill();
  EXPECT_EQ(world.store().Status().disk_blocks, 4u);
  EXPECT_TRUE(world.Audit().ok()) << world.Audit();
}

TEST(SpillWriterTest, NotMoreIsPinnedThanMayBeAndTheFileIsFinishedThen) {
  DiskWorldOptions options;
  options.store.disk.spilling_bytes_max = 3 * DiskWorld::kBlockBytes;
  options.file_bytes = 1 << 20;
  DiskWorld world(options);
  world.t().Put(world.t().Prompt("t", 1, 9));
  EXPECT_TRUE(world.StepSpill());
  EXPECT_EQ(world.store().Status().pins, 3u);
  EXPECT_TRUE(world.StepSpill());
  EXPECT_EQ(world.store().Status().disk_blocks, 3u);
  EXPECT_EQ(world.store().Status().pins, 0u);
}

TEST(SpillWriterTest, AWriteThatFailsLeavesBlocksInHostAndTheirNextUseTriesAgain) {
  for (const DiskCall call : {DiskCall::kStartFile, DiskCall::kAdd, DiskCall::kFinish}) {
    DiskWorld world;
    const TestPrompt prompt = world.t().Prompt("t", 1, 3);
    world.t().Put(prompt);
    world.disk().Fail(call, absl::UnavailableError("EIO"));
    world.Spill();
    EXPECT_EQ(world.counters().spills_failed, 3u);
    EXPECT_EQ(world.store().Status().disk_blocks, 0u);
    EXPECT_EQ(world.store().Status().pins, 0u);
    EXPECT_TRUE(world.Intact(prompt));
    world.StepHealth();
    world.t().Lookup("t", prompt, /*touch=*/true);
    world.Spill();
    EXPECT_EQ(world.store().Status().disk_blocks, 3u);
    EXPECT_TRUE(world.Audit().ok()) << world.Audit();
  }
}

TEST(SpillWriterTest, ADiskThatIsFullTakesWritesAgainWhenThereIsRoom) {
  DiskWorld world;
  const TestPrompt prompt = world.t().Prompt("t", 1, 3);
  world.disk().SetBytesMax(100);
  world.t().Put(prompt);
  world.Spill();
  EXPECT_EQ(world.disk().GetStats().health, DiskTier::Health::kFull);
  EXPECT_TRUE(world.Intact(prompt));
  world.disk().SetBytesMax(1 << 20);
  world.t().Advance(absl::Seconds(10));
  world.StepHealth();
  world.t().Lookup("t", prompt, /*touch=*/true);
  world.Spill();
  EXPECT_EQ(world.store().Status().disk_blocks, 3u);
}

TEST(SpillWriterTest, ABlockDeletedWhileItsFileIsWrittenNeverComesBack) {
  for (const DiskCall moment : {DiskCall::kAdd, DiskCall::kFinish}) {
    DiskWorld world;
    const TestPrompt prompt = world.t().Prompt("t", 1, 3);
    world.t().Put(prompt);
    bool deleted = false;
    world.disk().SetHook([&](DiskCall call) {
      if (call != moment || std::exchange(deleted, true)) return;
      const auto removed = world.store().Delete("t", world.t().fingerprint(), {prompt.keys[0]});
      ASSERT_TRUE(removed.ok()) << removed.status();
      EXPECT_THAT(*removed, ElementsAre(true));
    });
    world.Spill();
    world.disk().SetHook(nullptr);
    ASSERT_TRUE(deleted);
    EXPECT_EQ(world.t().States(prompt)[0], BlockState::kDeleted);
    EXPECT_EQ(world.store().Status().disk_blocks, 2u);
    world.Restart();
    EXPECT_EQ(world.t().States(prompt)[0], BlockState::kNeverSeen);
    EXPECT_EQ(world.t().States(prompt)[1], BlockState::kDisk);
    EXPECT_TRUE(world.Audit().ok()) << world.Audit();
  }
}

TEST(SpillWriterTest, AScopeClearedOrANamespaceRetiredWhileItIsWrittenNeverComesBack) {
  for (const DiskCall moment : {DiskCall::kAdd, DiskCall::kFinish, DiskCall::kPutFence}) {
    for (const bool retire : {false, true}) {
      DiskWorld world;
      const TestPrompt prompt = world.t().Prompt("t", 1, 3);
      world.t().Put(prompt);
      const auto remove = [&] {
        const auto removed = retire ? world.store().RetireNamespace(world.t().fingerprint())
                                    : world.store().ClearScope("t", world.t().fingerprint(),
                                                               ScopeDigest(prompt.scope));
        ASSERT_TRUE(removed.ok()) << removed.status();
        EXPECT_EQ(removed->blocks, 3u);
      };
      bool done = false;
      world.disk().SetHook([&](DiskCall call) {
        if (call != moment || std::exchange(done, true)) return;
        if (moment == DiskCall::kPutFence) {
          world.Spill();  // While the fence is made durable: nothing of the scope is taken.
        } else {
          remove();
        }
      });
      if (moment == DiskCall::kPutFence) remove();
      world.Spill();
      world.disk().SetHook(nullptr);
      ASSERT_TRUE(done);
      EXPECT_EQ(world.store().Status().disk_blocks, 0u);
      world.t().Register(TestStore::Shape(DiskWorld::kBlockBytes));
      EXPECT_EQ(world.t().Present(prompt), 0u);
      world.Spill();
      world.RestartBeforeRecovery();
      world.t().Register(TestStore::Shape(DiskWorld::kBlockBytes));
      world.Recover();
      EXPECT_EQ(world.t().Present(prompt), 0u);
      EXPECT_TRUE(world.Audit().ok()) << world.Audit();
    }
  }
}

TEST(SpillWriterTest, ARemovalThatCannotBeMadeDurableIsRefusedAndChangesNothing) {
  DiskWorld world;
  const TestPrompt prompt = world.PutOnDisk("t", 1, 3);
  const Fingerprint fingerprint = world.t().fingerprint();
  world.disk().Fail(DiskCall::kPutFence, absl::UnavailableError("EIO"), 2);
  world.disk().Fail(DiskCall::kMarkDead, absl::UnavailableError("EIO"));
  EXPECT_TRUE(absl::IsUnavailable(world.store().RetireNamespace(fingerprint).status()));
  EXPECT_TRUE(absl::IsUnavailable(
      world.store().ClearScope("t", fingerprint, ScopeDigest(prompt.scope)).status()));
  EXPECT_TRUE(absl::IsUnavailable(world.store().Delete("t", fingerprint, prompt.keys).status()));
  EXPECT_THAT(world.t().States(prompt), Each(BlockState::kDisk));
  world.disk().Heal();
  world.StepHealth();
  const auto removed = world.store().Delete("t", fingerprint, prompt.keys);
  ASSERT_TRUE(removed.ok()) << removed.status();
  EXPECT_THAT(*removed, Each(true));
  EXPECT_EQ(world.Count(prompt, BlockState::kDeleted), 3u);
  world.Restart();
  EXPECT_EQ(world.t().Present(prompt), 0u);
}

TEST(SpillWriterTest, AnOptionalPartThatIsNotThereIsNotWritten) {
  DiskWorld world;
  Namespace parts = TestStore::ManySegments(3, 2, true);
  parts.model = "parts";
  world.t().Register(parts);
  // The slot held all parts of another block before.
  const TestPrompt before = world.t().Prompt("t", 2, 1);
  world.t().Put(before);
  ASSERT_TRUE(world.store().Delete("t", world.t().fingerprint(), before.keys).ok());
  const TestPrompt prompt = world.t().Prompt("t", 1, 1);
  const auto reserved = world.t().Reserve(prompt);
  ASSERT_TRUE(reserved.ok());
  for (uint32_t slice = 0; slice < 2; ++slice) {
    ASSERT_TRUE(world.t().Write("t", *reserved->token, prompt.keys[0], 0, {0, slice, 0}, 3).ok());
    const WritePiece piece = world.t().Piece(prompt.keys[0], 0, {0, slice, 0}, 3);
    ASSERT_TRUE(world.store().Commit("t", *reserved->token, {piece.run}).ok());
  }
  world.Spill();
  std::vector<uint8_t> payload(8 * 64);
  ASSERT_TRUE(world.tier()
                  ->Read({world.disk().files().front(), 0}, prompt.keys[0], absl::MakeSpan(payload),
                         nullptr)
                  .ok());
  EXPECT_THAT(absl::MakeConstSpan(payload).subspan(6 * 64), Each(0));
  world.Restart();
  world.t().Know(world.t().Register(parts));
  EXPECT_EQ(world.Promote(prompt).prompts[0].blocks[0].state, BlockState::kPending);
  EXPECT_EQ(world.Load(), 1u);
  const BlockPin pin = world.t().Pin("t", prompt.keys[0]);
  ASSERT_TRUE(pin);
  EXPECT_TRUE(pin.SegmentPresent(5));
  EXPECT_FALSE(pin.SegmentPresent(6));
  EXPECT_TRUE(world.t().Intact(pin, prompt.keys[0]));
}

TEST(SpillWriterTest, NothingOfATenantsBlockIsInTheRecordOfAnothers) {
  DiskWorld world;
  Namespace parts = TestStore::ManySegments(3, 2, true);
  parts.model = "parts";
  // Each has another optional part; both are put together in the writer's one buffer.
  std::vector<TestPrompt> prompts;
  for (uint32_t there = 0; there < 2; ++there) {
    const std::string tenant = there == 0 ? "u" : "t";
    world.t().Register(parts, tenant);
    const TestPrompt& prompt = prompts.emplace_back(world.t().Prompt(tenant, 1 + there, 1));
    const auto reserved = world.t().Reserve(prompt);
    ASSERT_TRUE(reserved.ok());
    for (const auto& [first, layers] :
         {std::pair(SegmentId{1, there, 0}, 1u), std::pair(SegmentId{0, 0, 0}, 3u),
          std::pair(SegmentId{0, 1, 0}, 3u)}) {
      ASSERT_TRUE(world.t().Write(tenant, *reserved->token, prompt.keys[0], 0, first, layers).ok());
      const WritePiece piece = world.t().Piece(prompt.keys[0], 0, first, layers);
      ASSERT_TRUE(world.store().Commit(tenant, *reserved->token, {piece.run}).ok());
    }
  }
  world.Spill();
  std::vector<uint8_t> payload(8 * 64);
  for (uint32_t slot = 0; slot < 2; ++slot) {
    ASSERT_TRUE(world.tier()
                    ->Read({world.disk().files().front(), slot}, prompts[slot].keys[0],
                           absl::MakeSpan(payload), nullptr)
                    .ok());
    const auto part = [&](size_t segment) {
      return absl::MakeConstSpan(payload).subspan(segment * 64, 64);
    };
    EXPECT_THAT(part(7 - slot), Each(0)) << slot;
    EXPECT_THAT(part(6 + slot), ::testing::Not(Each(0))) << slot;
  }
}

TEST(SpillWriterTest, ADrainQueuesAllThatIsOnlyInHostMemory) {
  DiskWorldOptions options;
  options.store.disk.admission = SpillAdmission::kSecondTouch;
  options.store.disk.spill_queue_blocks_max = 5;
  DiskWorld world(options);
  const TestPrompt prompt = world.t().Prompt("t", 1, 17);
  world.t().Put(prompt);
  while (world.store().QueueHostBlocks() > 0) world.Spill();
  world.Spill();
  EXPECT_EQ(world.store().Status().disk_blocks, 17u);
  EXPECT_EQ(world.counters().spills_shed, 0u);
}

TEST(SpillWriterTest, BlocksThatNeverReachTheDiskAreCounted) {
  DiskWorldOptions options;
  options.store.disk.block_bytes_max = DiskWorld::kBlockBytes - 1;
  DiskWorld refuses(options);
  refuses.t().Put(refuses.t().Prompt("t", 1, 6));
  refuses.Spill();
  EXPECT_EQ(refuses.store().Status().disk_blocks, 0u);
  EXPECT_EQ(refuses.counters().spills_too_large, 6u);
  EXPECT_EQ(refuses.counters().spills_late, 0u);
  DiskWorld slow;  // Its writer has no turn before others take the room.
  const TestPrompt prompt = slow.t().Prompt("t", 1, 6);
  slow.t().Put(prompt);
  slow.FillHost(100);
  EXPECT_EQ(slow.counters().spills_late, slow.counters().evicted_blocks);
  EXPECT_GE(slow.counters().spills_late, 6u);
  EXPECT_EQ(slow.counters().spills_too_large, 0u);
}

TEST(SpillWriterTest, ATenantThatHasAllItMayOnDiskGetsNoMoreUntilSomeHasLeft) {
  DiskWorld world;
  TenantQuotas quotas;
  quotas.named["loud"] = {.disk_bytes_max = 4 * DiskWorld::kBlockBytes};
  world.store().SetQuotas(quotas);
  const TestPrompt first = world.t().Prompt("loud", 1, 4);
  ASSERT_EQ(world.t().Put(first), 4u);
  world.Spill();
  const TestPrompt loud = world.t().Prompt("loud", 2, 3);
  const TestPrompt quiet = world.t().Prompt("t", 3, 3);
  ASSERT_EQ(world.t().Put(loud), 3u);
  ASSERT_EQ(world.t().Put(quiet), 3u);
  world.Spill();
  EXPECT_EQ(world.store().Status().disk_blocks, 4u + 3u);
  EXPECT_EQ(world.counters().spills_over_quota, 3u);
  ASSERT_TRUE(world.store().Delete("loud", world.t().fingerprint(), first.keys).ok());
  world.t().Lookup("loud", loud, /*touch=*/true);
  world.Spill();
  EXPECT_EQ(world.store().Status().disk_blocks, 3u + 3u);
  EXPECT_TRUE(world.Audit().ok()) << world.Audit();
  world.Restart();
  for (const TenantStatus& tenant : world.store().Tenants()) {
    EXPECT_EQ(tenant.disk_bytes, 3 * DiskWorld::kBlockBytes) << tenant.tenant;
  }
}

}  // namespace
}  // namespace cairn::node
