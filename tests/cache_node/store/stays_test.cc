// Blocks that are to stay whatever comes, within a budget. Each test is a story on a pool of 16
// memory segments of 4 KiB, with 4 blocks in each; a quarter of it may be made to stay.
#include <gmock/gmock.h>

#include "tests/cache_node/store/test_store.h"

namespace cairn::node {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr uint64_t kBlockBytes = 1024;
constexpr uint32_t kPoolBlocks = 64;
constexpr uint32_t kStayBlocks = kPoolBlocks / 4;

class StaysTest : public ::testing::Test {
 protected:
  StaysTest() {
    t_.Register(TestStore::Shape(kBlockBytes));
    t_.Register(TestStore::Shape(kBlockBytes), "u");
  }

  int64_t UnixMsIn(absl::Duration duration) {
    return absl::ToUnixMillis(t_.clock.WallNow() + duration);
  }
  TestPrompt Put(const std::string& tenant, uint32_t seed, size_t blocks) {
    const TestPrompt prompt = t_.Prompt(tenant, seed, blocks);
    EXPECT_EQ(t_.Put(prompt), blocks);
    return prompt;
  }
  std::vector<StayOutcome> Stay(const TestPrompt& prompt, absl::Duration duration) {
    return t_.store->Stay(prompt.tenant(), t_.fingerprint(), prompt.keys, UnixMsIn(duration));
  }
  std::vector<StayOutcome> LetGo(const TestPrompt& prompt) {
    return t_.store->Stay(prompt.tenant(), t_.fingerprint(), prompt.keys, 0);
  }
  // Twice what the pool holds, each a prompt of its own.
  void Flood(const std::string& tenant) {
    for (uint32_t i = 0; i < 2 * kPoolBlocks; ++i) Put(tenant, ++flood_, 1);
  }
  void PassTime(absl::Duration duration) {
    t_.Advance(duration);
    t_.store->EndRetention(t_.clock.WallNow());
  }
  uint64_t StaysOf(const std::string& tenant) {
    for (const TenantStatus& status : t_.store->Tenants()) {
      if (status.tenant == tenant) return status.stays_bytes;
    }
    return 0;
  }
  void Audit() { EXPECT_TRUE(t_.store->Audit().ok()) << t_.store->Audit(); }

  TestStore t_;
  uint32_t flood_ = 1000;
};

TEST_F(StaysTest, WhatIsToStayOutlivesFloodsUntilItsTime) {
  const TestPrompt kept = Put("t", 1, 4);
  EXPECT_THAT(Stay(kept, absl::Seconds(10)), Each(StayOutcome::kStays));
  EXPECT_EQ(StaysOf("t"), 4 * kBlockBytes);
  Flood("t");
  Flood("u");
  EXPECT_EQ(t_.Present(kept), 4u);
  Audit();
  PassTime(absl::Seconds(10));
  EXPECT_EQ(StaysOf("t"), 0u);
  Flood("u");
  EXPECT_EQ(t_.Present(kept), 0u);
  Audit();
}

TEST_F(StaysTest, AWriterSaysSoWithItsReserveForBlocksNewAndThere) {
  const TestPrompt first = Put("t", 1, 2);
  const TestPrompt more = t_.Branch(first, 2, 7, 2);
  t_.stays_until_unix_ms = UnixMsIn(absl::Hours(1));
  const absl::StatusOr<ReserveAnswer> reserved = t_.Reserve(more);
  ASSERT_TRUE(reserved.ok());
  EXPECT_THAT(reserved->stays, Each(StayOutcome::kStays));
  EXPECT_EQ(StaysOf("t"), 4 * kBlockBytes);
  ASSERT_TRUE(t_.store->Abort("t", *reserved->token).ok());
  EXPECT_EQ(StaysOf("t"), 2 * kBlockBytes);
  EXPECT_EQ(t_.Put(more), 2u);
  t_.stays_until_unix_ms = 0;
  Flood("t");
  EXPECT_EQ(t_.Present(more), 4u);
  Audit();
}

TEST_F(StaysTest, OverTheBudgetItIsSaidAndTheBlockIsLikeAnyOther) {
  const TestPrompt prompt = Put("t", 1, kStayBlocks + 2);
  const std::vector<StayOutcome> outcomes = Stay(prompt, absl::Hours(1));
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const StayOutcome wanted = i < kStayBlocks    ? StayOutcome::kStays
                               : i == kStayBlocks ? StayOutcome::kBudget
                                                  : StayOutcome::kParentMayGo;
    EXPECT_EQ(outcomes[i], wanted) << i;
  }
  EXPECT_EQ(t_.counters.stays_refused, 1u);
  Flood("u");
  EXPECT_EQ(t_.Present(prompt), kStayBlocks);
  Audit();
}

TEST_F(StaysTest, ATenantHasABudgetOfItsOwn) {
  t_.store->SetQuotas({.others = {}, .named = {{"t", {.stays_bytes_max = 2 * kBlockBytes}}}});
  const TestPrompt mine = Put("t", 1, 3);
  EXPECT_THAT(Stay(mine, absl::Hours(1)),
              ElementsAre(StayOutcome::kStays, StayOutcome::kStays, StayOutcome::kBudget));
  const TestPrompt others = Put("u", 1, 3);
  EXPECT_THAT(Stay(others, absl::Hours(1)), Each(StayOutcome::kStays));
}

TEST_F(StaysTest, AQuotaThatIsLoweredEndsWhatIsOverItFromTheEndOfPrompts) {
  const TestPrompt mine = Put("t", 1, 6);
  const TestPrompt others = Put("u", 2, 6);
  Stay(mine, absl::Hours(1));
  Stay(others, absl::Hours(1));
  t_.store->SetQuotas({.others = {}, .named = {{"t", {.stays_bytes_max = 2 * kBlockBytes}}}});
  t_.store->Tick();
  EXPECT_EQ(StaysOf("t"), 2 * kBlockBytes);
  EXPECT_EQ(StaysOf("u"), 6 * kBlockBytes);
  EXPECT_EQ(t_.counters.stays_ended, 4u);
  Audit();
  Flood("t");
  EXPECT_EQ(t_.Present(mine), 2u);
}

TEST_F(StaysTest, WhatStaysDoesNotKeepATenantOverItsQuotaOfAllBytes) {
  const TestPrompt mine = Put("t", 1, 6);
  Stay(mine, absl::Hours(1));
  t_.store->SetQuotas({.others = {}, .named = {{"t", {.host_bytes_max = 3 * kBlockBytes}}}});
  t_.store->Tick();
  EXPECT_EQ(StaysOf("t"), 3 * kBlockBytes);
  EXPECT_EQ(t_.Present(mine), 3u);
  Audit();
}

TEST_F(StaysTest, OverAQuotaNothingIsMadeToStayLonger) {
  const TestPrompt mine = Put("t", 1, 2);
  Stay(mine, absl::Seconds(10));
  t_.store->SetQuotas({.others = {}, .named = {{"t", {.stays_bytes_max = kBlockBytes}}}});
  // The second stays as long as the first does, as before.
  EXPECT_THAT(Stay(mine, absl::Hours(1)), ElementsAre(StayOutcome::kBudget, StayOutcome::kStays));
  PassTime(absl::Seconds(10));
  EXPECT_EQ(StaysOf("t"), 0u);
}

TEST_F(StaysTest, NothingIsKeptThatNobodyIsChargedFor) {
  const TestPrompt prompt = Put("t", 1, 3);
  // Not the last alone: it would keep all before it.
  EXPECT_THAT(t_.store->Stay("t", t_.fingerprint(), {prompt.keys[2]}, UnixMsIn(absl::Hours(1))),
              ElementsAre(StayOutcome::kParentMayGo));
  ASSERT_THAT(Stay(prompt, absl::Hours(1)), Each(StayOutcome::kStays));
  // Nor are those before it let go without it.
  EXPECT_THAT(t_.store->Stay("t", t_.fingerprint(), {prompt.keys[0], prompt.keys[1]}, 0),
              Each(StayOutcome::kNeeded));
  EXPECT_EQ(StaysOf("t"), 3 * kBlockBytes);
  EXPECT_THAT(LetGo(prompt), Each(StayOutcome::kMayGo));
  EXPECT_EQ(StaysOf("t"), 0u);
  Flood("u");
  EXPECT_EQ(t_.Present(prompt), 0u);
  Audit();
}

TEST_F(StaysTest, ABlockStaysNoLongerThanThatBeforeIt) {
  const TestPrompt prompt = Put("t", 1, 2);
  Stay(prompt, absl::Seconds(5));
  EXPECT_THAT(t_.store->Stay("t", t_.fingerprint(), {prompt.keys[1]}, UnixMsIn(absl::Hours(1))),
              Each(StayOutcome::kStays));
  PassTime(absl::Seconds(5));
  EXPECT_EQ(StaysOf("t"), 0u);
  Audit();
}

TEST_F(StaysTest, RemovalByWillAndAnEndForPrivacyComeFirst) {
  const TestPrompt deleted = Put("t", 1, 2);
  t_.retention.expires_unix_ms = UnixMsIn(absl::Seconds(10));
  const TestPrompt expiring = Put("t", 2, 2);
  t_.retention = {};
  Stay(deleted, absl::Hours(1));
  Stay(expiring, absl::Hours(1));
  ASSERT_TRUE(t_.store->Delete("t", t_.fingerprint(), {deleted.keys[0]}).ok());
  EXPECT_EQ(StaysOf("t"), 2 * kBlockBytes);  // What followed is out of reach, and stays for nobody.
  PassTime(absl::Seconds(10));
  EXPECT_EQ(StaysOf("t"), 0u);
  EXPECT_EQ(t_.Present(deleted) + t_.Present(expiring), 0u);
  Audit();
}

TEST_F(StaysTest, ScatteredBlocksDoNotKeepThePoolFromOthers) {
  // One in each memory segment: four a segment in the order of writing.
  std::vector<TestPrompt> prompts;
  for (uint32_t i = 0; i < kPoolBlocks; ++i) prompts.push_back(Put("t", 100 + i, 1));
  size_t stayed = 0;
  for (uint32_t i = 0; i < kPoolBlocks; i += 4) {
    if (Stay(prompts[i], absl::Hours(1)).front() == StayOutcome::kStays) ++stayed;
  }
  EXPECT_LE(stayed, 4u);
  EXPECT_GE(stayed, 1u);
  Flood("u");
  EXPECT_GE(t_.UsedBlocks(kBlockBytes), kPoolBlocks - 4 * 4);
  Audit();
}

TEST_F(StaysTest, AnotherTenantsBlocksAreNotThere) {
  const TestPrompt prompt = Put("t", 1, 1);
  EXPECT_THAT(t_.store->Stay("u", t_.fingerprint(), prompt.keys, UnixMsIn(absl::Hours(1))),
              Each(StayOutcome::kNotThere));
  EXPECT_EQ(StaysOf("t") + StaysOf("u"), 0u);
}

}  // namespace
}  // namespace cairn::node
