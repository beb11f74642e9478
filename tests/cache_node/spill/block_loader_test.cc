// Blocks that are only on disk are asked for, loaded and read, over a disk in memory that damages,
// loses and refuses by script; removals come in the middle of a read through the disk's hook.
#include "cache_node/spill/block_loader.h"

#include <gmock/gmock.h>

#include "cache_node/store/scope_digest.h"
#include "tests/cache_node/spill/disk_world.h"

namespace cairn::node {
namespace {

using testing::DiskCall;
using ::testing::Each;
using ::testing::ElementsAre;

// Every block of the world's first file, in the order of a prompt of four.
DiskPlace PlaceInFirstFile(DiskWorld& world, uint32_t slot) {
  return {world.disk().files().front(), slot};
}

TEST(BlockLoaderTest, WhatIsPromotedIsPendingThenInHostWithItsBytes) {
  DiskWorld world;
  const TestPrompt prompt = world.PutOnDisk("t", 1, 6);
  const LookupAnswer asked = world.Promote(prompt);
  EXPECT_EQ(asked.prompts[0].present, 0u);
  for (const BlockAnswer& block : asked.prompts[0].blocks) {
    EXPECT_EQ(block.state, BlockState::kPending);
  }
  EXPECT_GT(world.t().load_signals, 0u);
  EXPECT_EQ(world.store().Status().loads, 6u);
  EXPECT_TRUE(world.Audit().ok()) << world.Audit();
  const uint64_t settled = world.t().settled_signals;
  EXPECT_EQ(world.Load(), 6u);
  EXPECT_GT(world.t().settled_signals, settled);
  EXPECT_THAT(world.t().States(prompt), Each(BlockState::kHost));
  EXPECT_TRUE(world.Intact(prompt));
  world.t().AdvancePastEverything();
  EXPECT_TRUE(world.t().Quiet().ok()) << world.t().Quiet();
}

TEST(BlockLoaderTest, HitsAreCountedByTheTierThatHadThem) {
  DiskWorld world;
  const TestPrompt prompt = world.PutOnDisk("t", 1, 3);
  const uint64_t before = world.counters().hit_tokens_disk;
  world.Promote(prompt);
  world.Load();
  EXPECT_EQ(world.counters().hit_tokens_disk, before);
  world.t().Lookup("t", prompt, /*touch=*/true);
  EXPECT_EQ(world.counters().hit_tokens_disk, before + 3 * TestStore::kBlockTokens);
  world.t().Lookup("t", prompt);
  EXPECT_EQ(world.counters().hit_tokens_disk, before + 3 * TestStore::kBlockTokens);
}

TEST(BlockLoaderTest, ManyWhoAskForOneBlockCauseOneRead) {
  DiskWorld world;
  const TestPrompt prompt = world.PutOnDisk("t", 1, 4);
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(world.Promote(prompt).prompts[0].blocks[3].state, BlockState::kPending);
  }
  world.Load();
  EXPECT_EQ(world.disk().calls(DiskCall::kRead), 4u);
  EXPECT_EQ(world.t().Present(prompt), 4u);
}

TEST(BlockLoaderTest, OtherTenantsNeitherSeeNorLoadIt) {
  DiskWorld world;
  const TestPrompt prompt = world.PutOnDisk("t", 1, 2);
  LookupQuery query;
  query.prompts.push_back({.keys = prompt.keys});
  query.promote = true;
  const LookupAnswer answer = world.store().Lookup("u", world.t().fingerprint(), query);
  EXPECT_EQ(answer.prompts[0].present, 0u);
  EXPECT_EQ(world.store().Status().loads, 0u);
}

TEST(BlockLoaderTest, ALeaseHoldsWhatIsBeingLoadedAndIsWholeWhenItIsResumed) {
  DiskWorld world;
  const TestPrompt prompt = world.PutOnDisk("t", 1, 5);
  const LookupAnswer first = world.LeaseAll(prompt, /*hold_pending=*/true);
  ASSERT_TRUE(first.lease.has_value());
  EXPECT_EQ(first.prompts[0].leased, 5u);
  EXPECT_EQ(first.prompts[0].present, 0u);
  EXPECT_FALSE(world.t().Pin("t", prompt.keys[0], first.lease));
  world.Load();
  world.FillHost(5000);  // What the lease holds stays.
  const LookupAnswer last = world.LeaseAll(prompt, /*hold_pending=*/false, first.lease);
  EXPECT_EQ(last.lease, first.lease);
  EXPECT_EQ(last.prompts[0].leased, 5u);
  EXPECT_EQ(last.prompts[0].present, 5u);
  EXPECT_TRUE(world.t().Pin("t", prompt.keys[4], last.lease));
  ASSERT_TRUE(world.store().EndLease("t", *last.lease, 0, {5}).ok());
  world.t().AdvancePastEverything();
  EXPECT_TRUE(world.t().Quiet().ok()) << world.t().Quiet();
}

TEST(BlockLoaderTest, ALeaseIsCutWhereALoadFailedAndWhereItsWaitEnds) {
  DiskWorld world;
  const TestPrompt prompt = world.PutOnDisk("t", 1, 6);
  const LookupAnswer first = world.LeaseAll(prompt, /*hold_pending=*/true);
  ASSERT_EQ(first.prompts[0].leased, 6u);
  ASSERT_TRUE(world.StepLoad());
  ASSERT_TRUE(world.StepLoad());
  world.disk().Fail(DiskCall::kRead, absl::UnavailableError("EIO"));
  ASSERT_TRUE(world.StepLoad());
  EXPECT_TRUE(world.Audit().ok()) << world.Audit();
  const LookupAnswer last = world.LeaseAll(prompt, /*hold_pending=*/false, first.lease);
  EXPECT_EQ(last.lease, first.lease);
  EXPECT_EQ(last.prompts[0].leased, 2u);
  EXPECT_EQ(last.prompts[0].present, 2u);
  EXPECT_EQ(last.prompts[0].blocks[2].state, BlockState::kLoadFailed);
  EXPECT_EQ(last.prompts[0].blocks[3].state, BlockState::kPending);
  const TenantStatus tenant = world.store().Tenants()[0];
  EXPECT_EQ(tenant.leased_bytes, 2 * DiskWorld::kBlockBytes);
  world.Load();
  ASSERT_TRUE(world.store().EndLease("t", *last.lease, 0, {2}).ok());
  world.t().AdvancePastEverything();
  EXPECT_TRUE(world.t().Quiet().ok()) << world.t().Quiet();
}

TEST(BlockLoaderTest, ALeaseWhoseCallerDiedGivesBackWhatItWaitedFor) {
  DiskWorld world;
  const TestPrompt prompt = world.PutOnDisk("t", 1, 3);
  world.LeaseAll(prompt, /*hold_pending=*/true);
  world.disk().Fail(DiskCall::kRead, absl::UnavailableError("EIO"));
  world.Load();
  world.t().AdvancePastEverything();
  EXPECT_TRUE(world.t().Quiet().ok()) << world.t().Quiet();
}

TEST(BlockLoaderTest, ADamagedBlockIsNeverServedAndCanBeWrittenAnew) {
  DiskWorld world;
  const TestPrompt prompt = world.PutOnDisk("t", 1, 3);
  world.disk().Damage(PlaceInFirstFile(world, 1));
  world.Promote(prompt);
  EXPECT_EQ(world.Load(), 3u);
  EXPECT_THAT(world.t().States(prompt),
              ElementsAre(BlockState::kHost, BlockState::kQuarantined, BlockState::kHost));
  EXPECT_EQ(world.t().Present(prompt), 1u);
  EXPECT_EQ(world.counters().loads_damaged, 1u);
  EXPECT_EQ(world.t().Put(prompt), 1u);
  EXPECT_TRUE(world.Intact(prompt));
  EXPECT_TRUE(world.Audit().ok()) << world.Audit();
}

// The tier finds its record whole; the digests say that the bytes are not the block's.
TEST(BlockLoaderTest, BytesThatDoNotHaveTheirDigestAreNeverServed) {
  DiskWorld world;
  const TestPrompt prompt = world.t().Prompt("t", 1, 1);
  world.t().Put(world.t().Prompt("t", 2, 1));
  world.Spill();  // So that the namespace is known to the ledger.
  DiskScope scope;
  scope.fingerprint = world.t().fingerprint();
  scope.tenant = "t";
  scope.scope_digest = ScopeDigest(prompt.scope);
  const std::vector<uint8_t> bytes(DiskWorld::kBlockBytes, 7);
  const std::vector<uint64_t> digests = {1234};
  DiskRecord record;
  record.block.key = prompt.keys[0];
  record.block.sequence = uint64_t{1} << 41;
  record.block.payload_bytes = bytes.size();
  record.scope = &scope;
  record.payload = bytes;
  record.digests = digests;
  auto file = world.tier()->StartFile();
  ASSERT_TRUE(file.ok() && (*file)->Add(record).ok() && (*file)->Finish().ok());
  world.Restart();
  ASSERT_EQ(world.t().States(prompt)[0], BlockState::kDisk);
  world.Promote(prompt);
  world.Load();
  EXPECT_EQ(world.t().States(prompt)[0], BlockState::kQuarantined);
  EXPECT_FALSE(world.t().Pin("t", prompt.keys[0]));
  EXPECT_TRUE(world.Audit().ok()) << world.Audit();
}

TEST(BlockLoaderTest, ADamagedBlockIsNotFoundAfterARestartEither) {
  DiskWorld world;
  const TestPrompt prompt = world.PutOnDisk("t", 1, 2);
  world.disk().Damage(PlaceInFirstFile(world, 0));
  world.Promote(prompt);
  world.Load();
  world.Restart();
  EXPECT_THAT(world.t().States(prompt), ElementsAre(BlockState::kNeverSeen, BlockState::kDisk));
}

TEST(BlockLoaderTest, ALoadThatFailsSaysSoAndIsTriedAgainLater) {
  DiskWorld world;
  const TestPrompt prompt = world.PutOnDisk("t", 1, 2);
  world.disk().Fail(DiskCall::kRead, absl::UnavailableError("EIO"), 2);
  world.Promote(prompt);
  world.Load();
  EXPECT_THAT(world.t().States(prompt), Each(BlockState::kLoadFailed));
  world.Promote(prompt);
  EXPECT_EQ(world.store().Status().loads, 0u);
  world.t().Advance(absl::Seconds(2));
  EXPECT_THAT(world.t().States(prompt), Each(BlockState::kDisk));
  world.Promote(prompt);
  world.Load();
  EXPECT_TRUE(world.Intact(prompt));
}

TEST(BlockLoaderTest, AFailingTierIsTakenOutAndComesBackByItself) {
  DiskWorld world;
  const TestPrompt prompt = world.PutOnDisk("t", 1, 2);
  world.store().SetDiskHealth(DiskTier::Health::kFailing);
  EXPECT_THAT(world.t().States(prompt), Each(BlockState::kLoadFailed));
  EXPECT_EQ(world.Promote(prompt).prompts[0].present, 0u);
  EXPECT_EQ(world.store().Status().loads, 0u);
  const auto reserved = world.t().Reserve(prompt);
  ASSERT_TRUE(reserved.ok());
  EXPECT_THAT(reserved->outcomes, Each(ReserveOutcome::kReserved));
  world.StepHealth();
  ASSERT_TRUE(world.store().Abort("t", *reserved->token).ok());
  EXPECT_THAT(world.t().States(prompt), Each(BlockState::kDisk));
  EXPECT_TRUE(world.Audit().ok()) << world.Audit();
}

TEST(BlockLoaderTest, AFileThatWasDeletedCostsOneReadAndItsBlocks) {
  DiskWorld world;
  const TestPrompt prompt = world.PutOnDisk("t", 1, 4);
  const uint64_t file = world.disk().files().front();
  world.disk().LoseFile(file);
  LookupQuery query;
  query.prompts.push_back({.keys = {prompt.keys[0]}});
  query.promote = true;
  world.store().Lookup("t", world.t().fingerprint(), query);
  world.Load();
  EXPECT_EQ(world.disk().calls(DiskCall::kRead), 1u);
  EXPECT_THAT(world.t().States(prompt), Each(BlockState::kEvicted));
  EXPECT_EQ(world.t().Put(prompt), 4u);
  EXPECT_TRUE(world.Audit().ok()) << world.Audit();
}

TEST(BlockLoaderTest, WithAllSlotsPinnedTheLeaseIsCutAtOnceAndNothingWaits) {
  DiskWorldOptions options;
  options.store.leased_bytes_max = uint64_t{1} << 30;
  DiskWorld world(options);
  const TestPrompt prompt = world.PutOnDisk("t", 1, 4);
  std::vector<BlockPin> pins;
  for (uint32_t i = 0; i < 16; ++i) {
    for (const BlockKey& key : world.t().Prompt("t", 1000 + i, 16).keys) {
      pins.push_back(world.t().Pin("t", key));
    }
  }
  pins.pop_back();
  pins.pop_back();
  const LookupAnswer answer = world.LeaseAll(prompt, /*hold_pending=*/true);
  EXPECT_EQ(answer.prompts[0].leased, 2u);
  EXPECT_EQ(answer.prompts[0].blocks[1].state, BlockState::kPending);
  EXPECT_EQ(answer.prompts[0].blocks[2].state, BlockState::kDisk);
  const auto reserved = world.t().Reserve(world.t().Prompt("t", 77, 1));
  ASSERT_TRUE(reserved.ok());
  EXPECT_THAT(reserved->outcomes, ElementsAre(ReserveOutcome::kNoSpace));
  world.Load();
  EXPECT_EQ(world.t().Present(prompt), 4u);
  EXPECT_TRUE(world.Audit().ok()) << world.Audit();
}

TEST(BlockLoaderTest, LoadingAPromptDoesNotPushOutItsOwnBeginning) {
  DiskWorld world;
  const TestPrompt prompt = world.PutOnDisk("t", 1, 8);
  // The prompt's first four blocks are loaded, and are the oldest of the host's blocks.
  TestPrompt half = prompt;
  half.keys.resize(4);
  half.tokens.resize(4 * TestStore::kBlockTokens);
  world.Promote(half);
  world.Load();
  for (uint32_t i = 0; i < 16; ++i) {
    world.t().Lookup("t", world.t().Prompt("t", 1000 + i, 16), /*touch=*/true);
  }
  world.Promote(prompt);
  world.Load();
  EXPECT_TRUE(world.Intact(prompt));
}

TEST(BlockLoaderTest, WhatIsRemovedWhileItIsReadIsNotServed) {
  enum class How { kDelete, kClear, kRetire };
  for (const How how : {How::kDelete, How::kClear, How::kRetire}) {
    DiskWorld world;
    const TestPrompt prompt = world.PutOnDisk("t", 1, 2);
    const Fingerprint fingerprint = world.t().fingerprint();
    const LookupAnswer leased = world.LeaseAll(prompt, /*hold_pending=*/true);
    ASSERT_TRUE(leased.lease.has_value());
    bool done = false;
    world.disk().SetHook([&](DiskCall call) {
      if (call != DiskCall::kRead || std::exchange(done, true)) return;
      if (how == How::kDelete) {
        EXPECT_TRUE(world.store().Delete("t", fingerprint, prompt.keys).ok());
      } else if (how == How::kClear) {
        EXPECT_TRUE(world.store().ClearScope("t", fingerprint, ScopeDigest(prompt.scope)).ok());
      } else {
        EXPECT_TRUE(world.store().RetireNamespace(fingerprint).ok());
      }
    });
    world.Load();
    world.disk().SetHook(nullptr);
    ASSERT_TRUE(done);
    EXPECT_EQ(world.t().Present(prompt), 0u);
    EXPECT_FALSE(world.t().Pin("t", prompt.keys[0]));
    EXPECT_EQ(world.store().Status().loads, 0u);
    EXPECT_TRUE(world.Audit().ok()) << world.Audit();
    world.t().AdvancePastEverything();
    world.t().AdvancePastEverything();
    EXPECT_TRUE(world.t().Quiet().ok()) << world.t().Quiet();
    world.RestartBeforeRecovery();
    world.t().Register(TestStore::Shape(DiskWorld::kBlockBytes));
    world.Recover();
    EXPECT_EQ(world.t().Present(prompt), 0u);
  }
}

TEST(BlockLoaderTest, ABlockWithAParentOnlyOnDiskIsReservedWrittenAndNoOrphan) {
  DiskWorld world;
  const TestPrompt base = world.PutOnDisk("t", 1, 3);
  const TestPrompt longer = world.t().Branch(base, 3, 9, 2);
  const auto reserved = world.t().Reserve(longer);
  ASSERT_TRUE(reserved.ok());
  EXPECT_THAT(reserved->outcomes, ElementsAre(ReserveOutcome::kPresent, ReserveOutcome::kPresent,
                                              ReserveOutcome::kPresent, ReserveOutcome::kReserved,
                                              ReserveOutcome::kReserved));
  EXPECT_TRUE(world.Audit().ok()) << world.Audit();
  world.Promote(base);
  world.Load();
  EXPECT_TRUE(world.Intact(base));
  EXPECT_TRUE(world.Audit().ok()) << world.Audit();
}

// What a record on disk may say wrongly, each of it damage.
TEST(BlockLoaderTest, ARecordThatIsNotTheBlockOfTheIndexIsDamage) {
  DiskWorld world;
  const TestPrompt prompt = world.PutOnDisk("t", 1, 2);
  world.Promote(prompt);
  const std::optional<LoadTask> task = world.store().TakeLoad();
  ASSERT_TRUE(task.has_value());
  DiskRecordFields right;
  ASSERT_TRUE(world.tier()->Read(task->place, task->block.key, task->destination, &right).ok());
  EXPECT_TRUE(VerifyRecord(*task, right).ok());
  std::vector<DiskRecordFields> wrong(10, right);
  wrong[0].block.key = prompt.keys[1];
  wrong[1].block.parent = prompt.keys[1];
  wrong[2].block.depth += 1;
  wrong[3].block.sequence += 1;
  wrong[4].block.payload_bytes += 64;
  wrong[5].scope.tenant = "u";
  wrong[6].scope.salt = "salt";
  wrong[7].tokens.pop_back();
  wrong[8].digests.push_back(1);
  wrong[9].digests[0] ^= 1;
  for (const DiskRecordFields& fields : wrong) {
    EXPECT_TRUE(absl::IsDataLoss(VerifyRecord(*task, fields)));
  }
  task->destination[5] ^= 1;
  EXPECT_TRUE(absl::IsDataLoss(VerifyRecord(*task, right)));
  world.store().FinishLoad(*task, absl::DataLossError("as found"), right);
  EXPECT_EQ(world.t().States(prompt)[0], BlockState::kQuarantined);
}

}  // namespace
}  // namespace cairn::node
