// Who makes room for whom: order of eviction, orphans, and memory segments that change class. Each
// test is a story on a pool of 16 memory segments of 4 KiB.
#include <gmock/gmock.h>
#include <sys/resource.h>

#include "common/base/check.h"
#include "tests/cache_node/store/test_store.h"

namespace cairn::node {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr uint64_t kBlockBytes = 1024;  // 4 in a memory segment, 64 in the pool.
constexpr uint64_t kPoolBlocks = 64;

// While it lives the process opens no further file, so that no memory segment can be made anew.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    CAIRN_CHECK(getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const rlimit none{.rlim_cur = 3, .rlim_max = before_.rlim_max};
    CAIRN_CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
  }
  ~NoMoreFiles() { CAIRN_CHECK(setrlimit(RLIMIT_NOFILE, &before_) == 0); }
  NoMoreFiles(const NoMoreFiles&) = delete;
  NoMoreFiles& operator=(const NoMoreFiles&) = delete;

 private:
  rlimit before_;
};

class EvictionTest : public ::testing::Test {
 protected:
  EvictionTest() { t_.Register(TestStore::Shape(kBlockBytes)); }

  // Fills the pool with single-block prompts, which are younger than all there is.
  void FillRest(uint32_t first_seed) {
    const uint64_t free = kPoolBlocks - t_.UsedBlocks(kBlockBytes);
    for (uint32_t i = 0; i < free; ++i) CAIRN_CHECK(t_.Put(t_.Prompt("t", first_seed + i, 1)) == 1);
    CAIRN_CHECK(t_.UsedBlocks(kBlockBytes) == kPoolBlocks);
  }
  void Audit() { EXPECT_TRUE(t_.store->Audit().ok()) << t_.store->Audit(); }

  TestStore t_;
};

TEST_F(EvictionTest, OfOneRequestTheDeepestGoesFirstAndExactlyWhatIsNeeded) {
  const TestPrompt old = t_.Prompt("t", 1, 3);
  ASSERT_EQ(t_.Put(old), 3u);
  FillRest(100);
  ASSERT_EQ(t_.Put(t_.Prompt("t", 2, 1)), 1u);
  EXPECT_EQ(t_.Present(old), 2u);
  EXPECT_EQ(t_.counters.evicted_blocks, 1u);
  ASSERT_EQ(t_.Put(t_.Prompt("t", 3, 2)), 2u);
  EXPECT_EQ(t_.Present(old), 0u);
  EXPECT_EQ(t_.counters.evicted_blocks, 3u);
  EXPECT_EQ(t_.UsedBlocks(kBlockBytes), kPoolBlocks);
  Audit();
}

TEST_F(EvictionTest, ATouchedOrLeasedPromptOutlivesOneThatWasOnlyLookedAt) {
  const TestPrompt touched = t_.Prompt("t", 1, 2);
  const TestPrompt leased = t_.Prompt("t", 2, 2);
  const TestPrompt looked_at = t_.Prompt("t", 3, 2);
  for (const TestPrompt& prompt : {touched, leased, looked_at}) ASSERT_EQ(t_.Put(prompt), 2u);
  FillRest(100);
  t_.Lookup("t", touched, /*touch=*/true);
  const LeaseId lease = *t_.Lease(leased).lease;
  ASSERT_TRUE(t_.store->EndLease("t", lease, 0, {2}).ok());
  for (int i = 0; i < 3; ++i) t_.Lookup("t", looked_at);
  for (uint32_t i = 0; i < 20; ++i) ASSERT_EQ(t_.Put(t_.Prompt("t", 200 + i, 1)), 1u);
  EXPECT_EQ(t_.Present(touched), 2u);
  EXPECT_EQ(t_.Present(leased), 2u);
  EXPECT_EQ(t_.Present(looked_at), 0u);
}

TEST_F(EvictionTest, ASharedPrefixSurvivesAFloodOfUniquePrompts) {
  const TestPrompt prefix = t_.Prompt("t", 1, 4);
  ASSERT_EQ(t_.Put(prefix), 4u);
  for (uint32_t i = 0; i < 200; ++i) {
    const TestPrompt prompt = t_.Branch(prefix, 4, 100 + i, 2);
    ASSERT_EQ(t_.Put(prompt), 2u);
    t_.Lookup("t", prompt, /*touch=*/true);
  }
  EXPECT_EQ(t_.Present(prefix), 4u);
  Audit();
}

TEST_F(EvictionTest, AReservedChildHoldsItsParentAndSpaceIsNotTakenFromTheOwnChain) {
  const TestPrompt chain = t_.Prompt("t", 1, 2);
  ASSERT_EQ(t_.Put(chain), 2u);
  const TestPrompt longer = t_.Branch(chain, 2, 9, 1);
  FillRest(100);
  // The oldest block that may go is the very parent: another goes.
  const auto answer = t_.Reserve(longer, 2);
  ASSERT_TRUE(answer.ok());
  EXPECT_THAT(answer->outcomes, ElementsAre(ReserveOutcome::kReserved));
  EXPECT_EQ(t_.Present(chain), 2u);
  t_.Put(t_.Prompt("t", 3, 40));
  EXPECT_EQ(t_.Present(chain), 2u);
  Audit();
}

TEST_F(EvictionTest, WhenEverythingIsPinnedNoSpaceComesAtOnceAndOthersAreServed) {
  FillRest(100);
  std::vector<BlockPin> pins;
  for (uint32_t i = 0; i < kPoolBlocks; ++i) {
    pins.push_back(t_.Pin("t", t_.Prompt("t", 100 + i, 1).keys[0]));
  }
  const auto answer = t_.Reserve(t_.Prompt("t", 1, 1));
  ASSERT_TRUE(answer.ok());
  EXPECT_THAT(answer->outcomes, ElementsAre(ReserveOutcome::kNoSpace));
  EXPECT_FALSE(answer->token.has_value());
  EXPECT_EQ(t_.Present(t_.Prompt("t", 100, 1)), 1u);
  EXPECT_EQ(t_.counters.evicted_blocks, 0u);
  pins.clear();
  EXPECT_EQ(t_.Put(t_.Prompt("t", 1, 1)), 1u);
  Audit();
}

TEST_F(EvictionTest, OrphansGoFirstLeafBeforeRootHoweverYoungTheyAre) {
  FillRest(100);
  const TestPrompt young = t_.Prompt("t", 1, 4);
  ASSERT_EQ(t_.Put(young), 4u);
  t_.Lookup("t", young, /*touch=*/true);
  ASSERT_TRUE(t_.store->Delete("t", t_.fingerprint(), {young.keys[1]}).ok());
  Audit();
  ASSERT_EQ(t_.Put(t_.Prompt("t", 2, 1)), 1u);  // Takes the deleted block's slot.
  ASSERT_EQ(t_.Put(t_.Prompt("t", 3, 1)), 1u);
  EXPECT_THAT(t_.States(young), ElementsAre(BlockState::kHost, BlockState::kDeleted,
                                            BlockState::kHost, BlockState::kEvicted));
  ASSERT_EQ(t_.Put(t_.Prompt("t", 4, 1)), 1u);
  EXPECT_THAT(t_.States(young), ElementsAre(BlockState::kHost, BlockState::kDeleted,
                                            BlockState::kEvicted, BlockState::kEvicted));
  Audit();
}

TEST_F(EvictionTest, OrphansAreUsableAgainWhenTheirParentReturnsAndNoLongerFirstToGo) {
  FillRest(100);
  const TestPrompt young = t_.Prompt("t", 1, 4);
  ASSERT_EQ(t_.Put(young), 4u);
  ASSERT_TRUE(t_.store->Delete("t", t_.fingerprint(), {young.keys[1]}).ok());
  EXPECT_EQ(t_.Present(young), 1u);
  EXPECT_EQ(t_.Put(young), 1u);
  EXPECT_EQ(t_.Present(young), 4u);
  ASSERT_EQ(t_.Put(t_.Prompt("t", 3, 2)), 2u);
  EXPECT_EQ(t_.Present(young), 4u);
  Audit();
}

TEST_F(EvictionTest, APublicParentIsNotHeldByATenantsBlocksWhichBecomeOrphans) {
  const TestPrompt shared = t_.Prompt("public", 1, 1);
  ASSERT_EQ(t_.Put(shared), 1u);
  const TestPrompt tail = t_.After(shared, "t", 2, 3);
  ASSERT_EQ(t_.Put(tail), 3u);
  ASSERT_TRUE(t_.store->Delete("public", t_.fingerprint(), {shared.keys[0]}).ok());
  Audit();
  while (t_.Put(t_.Prompt("t", static_cast<uint32_t>(100 + t_.counters.reserved_blocks), 1)) == 1 &&
         t_.counters.evicted_blocks < 2) {
  }
  EXPECT_THAT(t_.States(tail),
              ElementsAre(BlockState::kHost, BlockState::kEvicted, BlockState::kEvicted));
  ASSERT_EQ(t_.Put(shared), 1u);
  Audit();
}

TEST_F(EvictionTest, AnAbortedBlocksChildrenOfAnotherTokenAreOrphans) {
  const TestPrompt chain = t_.Prompt("t", 1, 2);
  const auto parent = t_.Reserve(chain, 0, 1);
  const auto child = t_.Reserve(chain, 1, 1);
  ASSERT_TRUE(parent.ok() && child.ok());
  ASSERT_TRUE(t_.WriteBlock("t", *child->token, chain.keys[1], 0).ok());
  ASSERT_TRUE(t_.CommitBlock("t", *child->token, chain.keys[1], 0).ok());
  EXPECT_THAT(t_.States(chain), ElementsAre(BlockState::kPending, BlockState::kHost));
  ASSERT_TRUE(t_.store->Abort("t", *parent->token).ok());
  EXPECT_THAT(t_.States(chain), ElementsAre(BlockState::kNeverSeen, BlockState::kHost));
  Audit();
  FillRest(100);
  ASSERT_EQ(t_.Put(t_.Prompt("t", 2, 1)), 1u);
  EXPECT_THAT(t_.States(chain), ElementsAre(BlockState::kNeverSeen, BlockState::kEvicted));
}

TEST_F(EvictionTest, ALargeOrphanedFamilyIsMarkedWholeInSteps) {
  TestStore t({.pool_bytes = 16 * 65536});
  t.Register(TestStore::Shape(kBlockBytes));
  const TestPrompt root = t.Prompt("t", 1, 1);
  ASSERT_EQ(t.Put(root), 1u);
  for (uint32_t i = 0; i < 250; ++i) ASSERT_EQ(t.Put(t.Branch(root, 1, 100 + i, 3)), 3u);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(t.store->Delete("t", t.fingerprint(), {root.keys[0]}).ok());
    EXPECT_TRUE(t.store->Audit().ok()) << t.store->Audit();
    ASSERT_EQ(t.Put(root), 1u);
    EXPECT_TRUE(t.store->Audit().ok()) << t.store->Audit();
  }
  EXPECT_EQ(t.Present(t.Branch(root, 1, 349, 3)), 4u);
}

TEST_F(EvictionTest, ThePoolServesAnotherSlotClassWithoutLosingSpace) {
  FillRest(100);
  const Fingerprint small = t_.fingerprint();
  const Fingerprint large = t_.Register(TestStore::Shape(4096, "large"));
  std::vector<TestPrompt> prompts;
  for (uint32_t i = 0; i < 16; ++i) {
    prompts.push_back(t_.Prompt("t", 500 + i, 1));
    ASSERT_EQ(t_.Put(prompts.back()), 1u) << i;
  }
  EXPECT_EQ(t_.UsedBlocks(4096), 16u);
  EXPECT_EQ(t_.counters.segment_remakes, 16u);
  for (const TestPrompt& prompt : prompts) EXPECT_EQ(t_.Present(prompt), 1u);
  Audit();
  t_.Use(small);
  for (uint32_t i = 0; i < kPoolBlocks; ++i) ASSERT_EQ(t_.Put(t_.Prompt("t", 900 + i, 1)), 1u);
  EXPECT_EQ(t_.UsedBlocks(kBlockBytes), kPoolBlocks);
  t_.Use(large);
  for (const TestPrompt& prompt : prompts) EXPECT_EQ(t_.Present(prompt), 0u);
  Audit();
}

TEST_F(EvictionTest, TheOlderUseLosesWhetherInTheOwnClassOrInAnother) {
  const Fingerprint small = t_.fingerprint();
  const TestPrompt old_small = t_.Prompt("t", 1, 4);  // One memory segment.
  ASSERT_EQ(t_.Put(old_small), 4u);
  t_.Register(TestStore::Shape(4096, "large"));
  const Fingerprint large = t_.fingerprint();
  std::vector<TestPrompt> large_prompts;
  for (uint32_t i = 0; i < 15; ++i) {
    large_prompts.push_back(t_.Prompt("t", 500 + i, 1));
    ASSERT_EQ(t_.Put(large_prompts.back()), 1u);
  }
  EXPECT_EQ(t_.counters.evicted_blocks, 0u);
  ASSERT_EQ(t_.Put(t_.Prompt("t", 600, 1)), 1u);  // The small blocks are older.
  EXPECT_EQ(t_.Present(large_prompts[0]), 1u);
  t_.Use(small);
  EXPECT_EQ(t_.Present(old_small), 0u);
  ASSERT_EQ(t_.Put(t_.Prompt("t", 2, 4)), 4u);  // Takes the segment of the oldest large block.
  t_.Use(large);
  EXPECT_EQ(t_.Present(large_prompts[0]), 0u);
  ASSERT_EQ(t_.Put(t_.Prompt("t", 601, 1)), 1u);  // The own oldest is older than the small ones.
  EXPECT_EQ(t_.Present(large_prompts[1]), 0u);
  t_.Use(small);
  EXPECT_EQ(t_.Present(t_.Prompt("t", 2, 4)), 4u);
  Audit();
}

TEST_F(EvictionTest, ASegmentOfAnotherClassInWhichSomethingIsHeldStays) {
  FillRest(100);
  const Fingerprint small = t_.fingerprint();
  std::vector<BlockPin> pins;
  for (uint32_t i = 0; i < kPoolBlocks; i += 4) {  // One in each memory segment.
    pins.push_back(t_.Pin("t", t_.Prompt("t", 100 + i, 1).keys[0]));
  }
  t_.Register(TestStore::Shape(4096, "large"));
  const auto refused = t_.Reserve(t_.Prompt("t", 1, 1));
  ASSERT_TRUE(refused.ok());
  EXPECT_THAT(refused->outcomes, ElementsAre(ReserveOutcome::kNoSpace));
  EXPECT_EQ(t_.counters.evicted_blocks, 0u);
  pins[5] = BlockPin();
  EXPECT_EQ(t_.Put(t_.Prompt("t", 1, 1)), 1u);
  EXPECT_EQ(t_.counters.evicted_blocks, 4u);
  pins.clear();
  t_.Use(small);
  Audit();
}

TEST_F(EvictionTest, TakingASegmentTakesTheDescendantsOfItsBlocksAlsoFromOtherSegments) {
  const Fingerprint small = t_.fingerprint();
  const TestPrompt chain = t_.Prompt("t", 1, 10);  // Over three memory segments.
  ASSERT_EQ(t_.Put(chain), 10u);
  FillRest(100);
  for (uint32_t i = 0; i < 54; ++i) t_.Lookup("t", t_.Prompt("t", 100 + i, 1), /*touch=*/true);
  t_.Register(TestStore::Shape(4096, "large"));
  ASSERT_EQ(t_.Put(t_.Prompt("t", 2, 1)), 1u);
  t_.Use(small);
  Audit();
  // No child is left without its parent.
  bool gone = false;
  for (const BlockState state : t_.States(chain)) {
    if (state != BlockState::kHost) gone = true;
    if (gone) {
      EXPECT_EQ(state, BlockState::kEvicted);
    }
  }
  EXPECT_TRUE(gone);
}

TEST_F(EvictionTest, OneTenantsBlocksTakeNoSlotFromAnotherTenantsSegmentWithoutARemake) {
  FillRest(100);
  ASSERT_EQ(t_.Put(t_.Prompt("u", 1, 4)), 4u);
  EXPECT_EQ(t_.counters.segment_remakes, 1u);
  EXPECT_EQ(t_.counters.evicted_blocks, 4u);
  EXPECT_EQ(t_.store->Tenants()[1].charged_bytes, 4 * kBlockBytes);
  Audit();
}

TEST_F(EvictionTest, AnEvictedKeyPutAgainWhileItsOldCopyIsPinnedIsANewBlock) {
  const TestPrompt prompt = t_.Prompt("t", 1, 1);
  ASSERT_EQ(t_.Put(prompt), 1u);
  const BlockPin old = t_.Pin("t", prompt.keys[0]);
  ASSERT_TRUE(t_.store->Delete("t", t_.fingerprint(), {prompt.keys[0]}).ok());
  EXPECT_EQ(t_.Put(prompt), 1u);
  const BlockPin fresh = t_.Pin("t", prompt.keys[0]);
  EXPECT_NE(old.bytes().data(), fresh.bytes().data());
  EXPECT_FALSE(old.readable());
  EXPECT_TRUE(fresh.readable());
  EXPECT_EQ(t_.store->Tenants()[0].charged_bytes, 2 * kBlockBytes);
  Audit();
}

TEST_F(EvictionTest, WithoutMemoryForANewSegmentAReserveIsRefusedAndLaterSucceeds) {
  FillRest(100);
  const Fingerprint first = t_.fingerprint();
  t_.Register(TestStore::Shape(2 * kBlockBytes, "other"));
  const TestPrompt other = t_.Prompt("t", 1, 1);
  // Compared when files can be opened again: a sanitizer that looks closer at a matcher needs some.
  const auto answer = [&] {
    const NoMoreFiles no_more_files;
    return t_.Reserve(other);
  }();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(answer->outcomes, ElementsAre(ReserveOutcome::kNoSpace));
  Audit();
  EXPECT_EQ(t_.Put(other), 1u);
  t_.Use(first);
  EXPECT_EQ(t_.Put(t_.Prompt("t", 900, 8)), 8u);
  Audit();
}

TEST_F(EvictionTest, WithoutMemoryForANewSegmentAClassGoesOnWithItsOwnBlocks) {
  for (uint32_t i = 0; i < 60; ++i) ASSERT_EQ(t_.Put(t_.Prompt("t", 100 + i, 1)), 1u);
  t_.Register(TestStore::Shape(2 * kBlockBytes, "other"));
  ASSERT_EQ(t_.Put(t_.Prompt("t", 1, 2)), 2u);
  const NoMoreFiles no_more_files;
  for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(t_.Put(t_.Prompt("t", 2 + i, 1)), 1u);
  Audit();
}

TEST_F(EvictionTest, WhatAClassLeftFreeIsUsedByOthersBeforeTheyEvictTheirOwn) {
  const Fingerprint small = t_.fingerprint();
  const Fingerprint large = t_.Register(TestStore::Shape(2 * kBlockBytes, "large"));
  std::vector<TestPrompt> old;
  for (uint32_t i = 0; i < 4; ++i) {
    old.push_back(t_.Prompt("t", 500 + i, 1));
    ASSERT_EQ(t_.Put(old.back()), 1u);
  }
  // The small blocks take the other 14 memory segments, and then all but one in each is deleted.
  t_.Use(small);
  std::vector<TestPrompt> kept;
  for (uint32_t i = 0; i < 56; ++i) {
    const TestPrompt prompt = t_.Prompt("t", i, 1);
    ASSERT_EQ(t_.Put(prompt), 1u);
    if (i % 4 == 0) {
      kept.push_back(prompt);
    }
  }
  for (uint32_t i = 0; i < 56; ++i) {
    if (i % 4 == 0) continue;
    ASSERT_TRUE(t_.store->Delete("t", small, t_.Prompt("t", i, 1).keys).ok());
  }
  // The large blocks are older than all that is left; still none of them has to go.
  t_.Use(large);
  for (uint32_t i = 0; i < 12; ++i) ASSERT_EQ(t_.Put(t_.Prompt("t", 600 + i, 1)), 1u);
  for (const TestPrompt& prompt : old) EXPECT_EQ(t_.Present(prompt), 1u);
  for (uint32_t i = 0; i < 12; ++i) EXPECT_EQ(t_.Present(t_.Prompt("t", 600 + i, 1)), 1u);
  t_.Use(small);
  size_t left = 0;
  for (const TestPrompt& prompt : kept) left += t_.Present(prompt);
  EXPECT_EQ(left, 8u);
  Audit();
}

}  // namespace
}  // namespace cairn::node
