// What one tenant's blocks may do to another's: each test is a story of two tenants on a pool of 16
// memory segments of 4 KiB, with 4 blocks in each.
#include <gmock/gmock.h>

#include "tests/cache_node/store/test_store.h"

namespace cairn::node {
namespace {

using ::testing::Contains;
using ::testing::Each;

constexpr uint64_t kBlockBytes = 1024;
constexpr uint32_t kPoolBlocks = 64;

class TenantQuotaTest : public ::testing::Test {
 protected:
  TenantQuotaTest() {
    t_.Register(TestStore::Shape(kBlockBytes), "quiet");
    t_.Register(TestStore::Shape(kBlockBytes), "loud");
  }

  void SetQuota(const std::string& tenant, const TenantQuota& quota) {
    quotas_.named[tenant] = quota;
    t_.store->SetQuotas(quotas_);
  }
  // Prompts of one block, each younger than all before.
  std::vector<TestPrompt> Flood(const std::string& tenant, uint32_t count) {
    std::vector<TestPrompt> prompts;
    for (uint32_t i = 0; i < count; ++i) {
      prompts.push_back(t_.Prompt(tenant, ++seed_, 1));
      EXPECT_EQ(t_.Put(prompts.back()), 1u);
    }
    return prompts;
  }
  uint32_t PresentOf(const std::vector<TestPrompt>& prompts) {
    uint32_t present = 0;
    for (const TestPrompt& prompt : prompts) present += t_.Present(prompt);
    return present;
  }
  uint64_t ChargedTo(const std::string& tenant) {
    for (const TenantStatus& status : t_.store->Tenants()) {
      if (status.tenant == tenant) return status.charged_bytes;
    }
    return 0;
  }
  std::vector<ReserveOutcome> OutcomesOf(const TestPrompt& prompt) {
    const absl::StatusOr<ReserveAnswer> answer = t_.Reserve(prompt);
    EXPECT_TRUE(answer.ok()) << answer.status();
    if (!answer.ok()) return {};
    if (answer->token.has_value()) {
      EXPECT_TRUE(t_.store->Abort(prompt.tenant(), *answer->token).ok());
    }
    return answer->outcomes;
  }
  void Audit() { EXPECT_TRUE(t_.store->Audit().ok()) << t_.store->Audit(); }

  TestStore t_;
  TenantQuotas quotas_;
  uint32_t seed_ = 0;
};

TEST_F(TenantQuotaTest, WithoutQuotasAFloodWashesAnotherTenantOut) {
  const std::vector<TestPrompt> quiet = Flood("quiet", 16);
  Flood("loud", 2 * kPoolBlocks);
  EXPECT_EQ(PresentOf(quiet), 0u);
  Audit();
}

TEST_F(TenantQuotaTest, WhatIsKeptForATenantSurvivesAFloodOfAnother) {
  SetQuota("quiet", {.host_bytes_kept = 16 * kBlockBytes});
  const std::vector<TestPrompt> quiet = Flood("quiet", 20);
  Flood("loud", 4 * kPoolBlocks);
  EXPECT_EQ(PresentOf(quiet), 16u);
  EXPECT_EQ(ChargedTo("loud"), (kPoolBlocks - 16) * kBlockBytes);
  Audit();
}

TEST_F(TenantQuotaTest, WhoHasLessThanIsKeptTakesFromOthersHoweverNew) {
  SetQuota("quiet", {.host_bytes_kept = 16 * kBlockBytes});
  const std::vector<TestPrompt> first = Flood("quiet", 4);
  const std::vector<TestPrompt> loud = Flood("loud", kPoolBlocks);
  ASSERT_EQ(t_.UsedBlocks(kBlockBytes), kPoolBlocks);
  const std::vector<TestPrompt> more = Flood("quiet", 12);
  EXPECT_EQ(PresentOf(first) + PresentOf(more), 16u);
  // Beyond it age decides again: its own oldest goes before what is younger.
  for (const TestPrompt& prompt : loud) t_.Lookup("loud", prompt, /*touch=*/true);
  Flood("quiet", 4);
  EXPECT_EQ(ChargedTo("quiet"), 16 * kBlockBytes);
  EXPECT_EQ(PresentOf(first), 0u);
  Audit();
}

TEST_F(TenantQuotaTest, ATenantThatHasAllItMayMakesRoomAmongItsOwn) {
  SetQuota("loud", {.host_bytes_max = 24 * kBlockBytes});
  const std::vector<TestPrompt> quiet = Flood("quiet", 8);
  const std::vector<TestPrompt> loud = Flood("loud", 3 * kPoolBlocks);
  EXPECT_EQ(PresentOf(quiet), 8u);
  EXPECT_EQ(PresentOf(loud), 24u);
  EXPECT_EQ(t_.Present(loud.back()), 1u);
  EXPECT_EQ(ChargedTo("loud"), 24 * kBlockBytes);
  EXPECT_EQ(t_.counters.refused_quota, 0u);
  Audit();
}

TEST_F(TenantQuotaTest, RoomAmongItsOwnIsAlsoThatOfAnotherBlockSize) {
  SetQuota("loud", {.host_bytes_max = 8 * kBlockBytes});
  Flood("loud", 8);
  const Fingerprint large = t_.Register(TestStore::Shape(4 * kBlockBytes, "large"), "loud");
  t_.Use(large);
  EXPECT_EQ(t_.Put(t_.Prompt("loud", 1000, 1)), 1u);
  EXPECT_LE(ChargedTo("loud"), 8 * kBlockBytes);
  Audit();
}

TEST_F(TenantQuotaTest, WhenItsOwnAreAllInUseItIsRefusedAndOthersAreNot) {
  SetQuota("loud", {.host_bytes_max = 4 * kBlockBytes});
  const TestPrompt held = t_.Prompt("loud", 1, 4);
  ASSERT_EQ(t_.Put(held), 4u);
  const LeaseId lease = *t_.Lease(held).lease;
  EXPECT_THAT(OutcomesOf(t_.Prompt("loud", 2, 1)), Each(ReserveOutcome::kQuota));
  EXPECT_EQ(t_.counters.refused_quota, 1u);
  EXPECT_EQ(t_.counters.refused_quota_host, 1u);
  EXPECT_EQ(Flood("quiet", 1).size(), 1u);
  ASSERT_TRUE(t_.store->EndLease("loud", lease, 0, {4}).ok());
  EXPECT_THAT(OutcomesOf(t_.Prompt("loud", 2, 1)), Each(ReserveOutcome::kReserved));
  Audit();
}

TEST_F(TenantQuotaTest, LeasedAndReservedBytesHaveQuotasOfTheirOwn) {
  SetQuota("loud", {.leased_bytes_max = 2 * kBlockBytes, .reserved_bytes_max = 3 * kBlockBytes});
  EXPECT_THAT(OutcomesOf(t_.Prompt("loud", 1, 4)), Contains(ReserveOutcome::kQuota));
  const TestPrompt prompt = t_.Prompt("loud", 2, 3);
  ASSERT_EQ(t_.Put(prompt), 3u);
  EXPECT_EQ(t_.counters.refused_quota_reserved, 1u);
  EXPECT_EQ(t_.counters.refused_leased, 0u);
  EXPECT_EQ(t_.Lease(prompt).prompts[0].leased, 2u);
  EXPECT_EQ(t_.counters.refused_leased, 1u);
  EXPECT_EQ(t_.Lease(prompt).prompts[0].leased, 0u);
  const TestPrompt other = t_.Prompt("quiet", 2, 3);
  ASSERT_EQ(t_.Put(other), 3u);
  EXPECT_EQ(t_.Lease(other).prompts[0].leased, 3u);
}

TEST_F(TenantQuotaTest, ALowerQuotaShrinksWhatIsHeldTheOldestFirst) {
  const std::vector<TestPrompt> quiet = Flood("quiet", 8);
  const std::vector<TestPrompt> loud = Flood("loud", 20);
  SetQuota("loud", {.host_bytes_max = 4 * kBlockBytes});
  t_.store->Tick();
  EXPECT_EQ(ChargedTo("loud"), 4 * kBlockBytes);
  EXPECT_EQ(PresentOf({loud.begin() + 16, loud.end()}), 4u);
  EXPECT_EQ(PresentOf(quiet), 8u);
  EXPECT_EQ(t_.counters.shrunk_blocks, 16u);
  Audit();
}

TEST_F(TenantQuotaTest, WhatIsInUseGoesWhenItIsNot) {
  const TestPrompt held = t_.Prompt("loud", 1000, 6);
  ASSERT_EQ(t_.Put(held), 6u);
  const LeaseId lease = *t_.Lease(held, 1, absl::Seconds(10)).lease;
  SetQuota("loud", {.host_bytes_max = 2 * kBlockBytes});
  t_.store->Tick();
  EXPECT_EQ(t_.Present(held), 6u);
  ASSERT_TRUE(t_.store->EndLease("loud", lease, 0, {6}).ok());
  t_.store->Tick();
  EXPECT_EQ(t_.Present(held), 2u);
  // Raised again, nothing more goes.
  SetQuota("loud", {});
  t_.store->Tick();
  EXPECT_EQ(t_.Present(held), 2u);
  Audit();
}

TEST_F(TenantQuotaTest, AQuotaForOthersIsThatOfTenantsNeverSeenBefore) {
  quotas_.others = {.host_bytes_max = 2 * kBlockBytes};
  SetQuota("quiet", {});
  t_.Register(TestStore::Shape(kBlockBytes), "new");
  EXPECT_EQ(PresentOf(Flood("new", 5)), 2u);
  EXPECT_EQ(PresentOf(Flood("quiet", 5)), 5u);
}

}  // namespace
}  // namespace cairn::node
