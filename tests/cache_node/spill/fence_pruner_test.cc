// Scopes are cleared and namespaces retired over a disk in memory, fences are pruned, and the
// process is killed: what was removed must stay gone, and the ledger small.
#include "cache_node/spill/fence_pruner.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "cache_node/store/scope_digest.h"
#include "tests/cache_node/spill/disk_world.h"

namespace cairn::node {
namespace {

using testing::DiskCall;
using ::testing::Each;

class FencePrunerTest : public ::testing::Test {
 protected:
  void Clear(const TestPrompt& prompt) {
    ASSERT_TRUE(
        world_.store()
            .ClearScope(prompt.tenant(), world_.t().fingerprint(), ScopeDigest(prompt.scope))
            .ok());
  }
  void Prune(size_t fences_max = FencePruner::kFencesMax) {
    FencePruner(world_.tier(), &world_.store(), fences_max).Step(world_.t().clock.SteadyNow());
  }
  // Beside the mark of where sequences begin.
  size_t Fences() { return world_.tier()->ReadLedger()->fences.size() - 1; }
  // Every file of now leaves.
  void RollOver() {
    const uint64_t bytes_max = world_.disk().GetStats().bytes_max;
    world_.disk().SetBytesMax(DiskWorldOptions().headroom_bytes);
    world_.Reclaim();
    ASSERT_TRUE(world_.disk().files().empty());
    world_.disk().SetBytesMax(bytes_max);
    world_.t().Advance(absl::Seconds(10));
    world_.StepHealth();
  }

  DiskWorld world_;
};

TEST_F(FencePrunerTest, AFenceStaysWhileAFileIsOlderAndGoesWithIt) {
  const TestPrompt cleared = world_.PutOnDisk("t", 1, 3, "salt");
  const TestPrompt kept = world_.PutOnDisk("t", 2, 3);
  Clear(cleared);
  Prune();
  EXPECT_EQ(Fences(), 1u);
  world_.Restart();
  EXPECT_EQ(world_.t().Present(cleared), 0u);
  EXPECT_EQ(world_.t().Present(kept), 3u);
  Prune();
  EXPECT_EQ(Fences(), 1u) << "its records are on disk, dead ones";

  RollOver();
  const TestPrompt later = world_.PutOnDisk("t", 3, 3, "salt");
  Prune();
  EXPECT_EQ(Fences(), 1u) << "the last file is known to be gone when the next is taken";
  world_.Reclaim();
  EXPECT_EQ(world_.store().TakeReclaim().has_value(), true);
  Prune();
  EXPECT_EQ(Fences(), 0u);
  world_.Restart();
  EXPECT_EQ(world_.t().Present(cleared), 0u);
  EXPECT_EQ(world_.t().Present(later), 3u);
}

TEST_F(FencePrunerTest, NothingIsPrunedWhileBlocksAreBeingFound) {
  const TestPrompt cleared = world_.PutOnDisk("t", 1, 3, "salt");
  Clear(cleared);
  world_.RestartBeforeRecovery();
  Prune();
  EXPECT_EQ(Fences(), 1u);
  world_.Recover();
  EXPECT_EQ(world_.t().Present(cleared), 0u);
}

TEST_F(FencePrunerTest, AFenceIsNeededByAFileThatIsBeingWritten) {
  const TestPrompt prompt = world_.t().Prompt("t", 1, 3, "salt");
  world_.t().Put(prompt);
  world_.disk().SetHook([&](DiskCall call) {
    if (call != DiskCall::kFinish) return;
    world_.disk().SetHook(nullptr);
    Clear(prompt);  // Where they lie was reported before, so that they are not marked.
    Prune();
  });
  world_.Spill();
  EXPECT_EQ(world_.t().Present(prompt), 0u);
  EXPECT_EQ(Fences(), 1u);
  world_.Restart();
  EXPECT_EQ(world_.t().Present(prompt), 0u);
}

TEST_F(FencePrunerTest, AFenceIsNeededUntilAllThatItCoversIsRemoved) {
  const TestPrompt prompt = world_.t().Prompt("t", 1, 3, "salt");
  world_.t().Put(prompt);
  world_.disk().SetHook([&](DiskCall call) {
    if (call != DiskCall::kPutFence) return;
    world_.disk().SetHook(nullptr);
    Clear(prompt);  // The same again, beside the first, is durable when the pruner comes.
    Clear(world_.t().Prompt("t", 2, 1, "other"));
    Prune();
    EXPECT_EQ(Fences(), 2u);
  });
  Clear(prompt);
  Prune();
  EXPECT_EQ(Fences(), 0u);
}

TEST_F(FencePrunerTest, AnyNumberOfClearsTakesABoundedLedgerAndAllStaysGone) {
  constexpr size_t kFencesMax = 10;
  const TestPrompt oldest = world_.PutOnDisk("t", 1, 3);
  std::vector<TestPrompt> cleared;
  for (uint32_t i = 0; i < 50; ++i) {
    cleared.push_back(world_.t().Prompt("t", 100 + i, 1, absl::StrCat("salt-", i)));
    world_.t().Put(cleared.back());
    world_.Spill();
    Clear(cleared.back());
    if (i % 7 == 0) Prune(kFencesMax);
  }
  const TestPrompt newest = world_.PutOnDisk("t", 2, 3);
  Prune(kFencesMax);
  EXPECT_EQ(Fences(), kFencesMax);
  EXPECT_EQ(world_.t().Present(oldest), 3u) << "only a restart forgets it";
  world_.Restart();
  for (const TestPrompt& prompt : cleared) EXPECT_EQ(world_.t().Present(prompt), 0u);
  EXPECT_EQ(world_.t().Present(newest), 3u);
  EXPECT_EQ(world_.t().Present(oldest), 0u);
  EXPECT_TRUE(world_.Audit().ok()) << world_.Audit();
}

TEST_F(FencePrunerTest, EpochsOutliveTheFilesOfTheirNamespaces) {
  ASSERT_TRUE(world_.store().RetireNamespace(world_.t().fingerprint()).ok());
  Prune();
  world_.Restart();
  world_.t().Register(TestStore::Shape(DiskWorld::kBlockBytes));
  const auto again = world_.store().RetireNamespace(world_.t().fingerprint());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->epoch, 2u);
}

TEST_F(FencePrunerTest, APrunerTriesAgainOnlyAfterItsPause) {
  FencePruner pruner(world_.tier(), &world_.store());
  for (int i = 0; i < 100; ++i) {
    pruner.Step(world_.t().clock.SteadyNow());
    world_.t().Advance(absl::Milliseconds(600));
  }
  EXPECT_EQ(world_.disk().calls(DiskCall::kPruneFences), 2u);
}

}  // namespace
}  // namespace cairn::node
