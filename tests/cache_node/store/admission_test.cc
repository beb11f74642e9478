// Newcomers against what is there: a full store whose policy keeps what it has; then what policies
// are told of requests.

#include <gmock/gmock.h>

#include "tests/cache_node/store/keeping_policy.h"
#include "tests/cache_node/store/test_store.h"

namespace cairn::node {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kBlockBytes = 1024;
constexpr size_t kSlots = 64;

constexpr ReserveOutcome kReserved = ReserveOutcome::kReserved;
constexpr ReserveOutcome kPresent = ReserveOutcome::kPresent;
constexpr ReserveOutcome kDeclined = ReserveOutcome::kDeclined;
constexpr ReserveOutcome kUndecided = ReserveOutcome::kUndecided;

class AdmissionTest : public ::testing::Test {
 protected:
  // A whole prompt may be reserved at once.
  static BlockStore::Options LargeReserves() {
    BlockStore::Options options;
    options.reserved_bytes_max = uint64_t{1} << 30;
    return options;
  }

  explicit AdmissionTest(BlockStore::Options options = LargeReserves())
      : t_({.store = options, .policies = std::make_unique<KeepingPolicyFactory>(&log_)}) {
    t_.Register(TestStore::Shape(kBlockBytes));
  }

  std::vector<ReserveOutcome> Outcomes(const TestPrompt& prompt) {
    const auto answer = t_.Reserve(prompt);
    EXPECT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->retry_after, absl::ZeroDuration());
    return answer->outcomes;
  }

  KeepingLog log_;
  TestStore t_;
};

TEST_F(AdmissionTest, AFullStoreDeclinesANewcomerThatIsNotWorthItsVictim) {
  const TestPrompt old = t_.Prompt("t", 1, kSlots);
  ASSERT_EQ(t_.Put(old), kSlots);
  EXPECT_THAT(Outcomes(t_.Prompt("t", 2, 3)), ElementsAre(kDeclined, kUndecided, kUndecided));
  EXPECT_EQ(t_.Present(old), kSlots);
  EXPECT_EQ(t_.counters.evicted_blocks, 0u);
  EXPECT_EQ(t_.counters.declined_newcomers, 1u);
  EXPECT_EQ(t_.counters.refused_no_space, 0u);
  EXPECT_TRUE(t_.store->Audit().ok()) << t_.store->Audit();
}

TEST_F(AdmissionTest, WhatFitsComesInAndTheFirstThatDoesNotEndsTheRest) {
  ASSERT_EQ(t_.Put(t_.Prompt("t", 1, kSlots - 2)), kSlots - 2);
  EXPECT_THAT(Outcomes(t_.Prompt("t", 2, 4)),
              ElementsAre(kReserved, kReserved, kDeclined, kUndecided));
  EXPECT_EQ(t_.counters.evicted_blocks, 0u);
}

TEST_F(AdmissionTest, WhatIsThereAlreadyIsPresentAndNobodyIsAsked) {
  const TestPrompt old = t_.Prompt("t", 1, kSlots);
  t_.Put(old);
  EXPECT_THAT(Outcomes(old), Each(kPresent));
  EXPECT_EQ(log_.declined, 0u);
}

TEST_F(AdmissionTest, AnOrphanMakesRoomUnasked) {
  const TestPrompt old = t_.Prompt("t", 1, kSlots);
  t_.Put(old);
  ASSERT_TRUE(t_.store->Delete("t", t_.fingerprint(), {old.keys[kSlots - 2]}).ok());
  // One slot is free, and the block behind the deleted one cannot be reached.
  EXPECT_THAT(Outcomes(t_.Prompt("t", 2, 3)), ElementsAre(kReserved, kReserved, kDeclined));
}

TEST_F(AdmissionTest, AHigherPriorityComesInUnasked) {
  t_.Put(t_.Prompt("t", 1, kSlots));
  t_.retention.priority = kPriorityDefault + 1;
  EXPECT_THAT(Outcomes(t_.Prompt("t", 2, 2)), Each(kReserved));
  EXPECT_EQ(log_.declined, 0u);
}

TEST_F(AdmissionTest, WhatIsToStayComesInUnasked) {
  t_.Put(t_.Prompt("t", 1, kSlots));
  t_.stays_until_unix_ms = absl::ToUnixMillis(t_.clock.WallNow() + absl::Hours(1));
  EXPECT_THAT(Outcomes(t_.Prompt("t", 2, 2)), Each(kReserved));
}

TEST_F(AdmissionTest, FullByItsQuotaATenantsOwnVictimIsCompared) {
  TenantQuotas quotas;
  quotas.others.host_bytes_max = 2 * kBlockBytes;
  t_.store->SetQuotas(quotas);
  ASSERT_EQ(t_.Put(t_.Prompt("t", 1, 2)), 2u);
  EXPECT_THAT(Outcomes(t_.Prompt("t", 2, 1)), ElementsAre(kDeclined));
}

class AdmissionByIndexTest : public AdmissionTest {
 protected:
  static BlockStore::Options SmallIndex() {
    BlockStore::Options options = LargeReserves();
    options.index_bytes_max = 3000;
    return options;
  }
  AdmissionByIndexTest() : AdmissionTest(SmallIndex()) {}
};

TEST_F(AdmissionByIndexTest, FullByItsIndexTheClassesVictimIsCompared) {
  ASSERT_GT(t_.Put(t_.Prompt("t", 1, 60)), 0u);
  EXPECT_THAT(Outcomes(t_.Prompt("t", 2, 1)), ElementsAre(kDeclined));
  EXPECT_EQ(t_.counters.declined_newcomers, 1u);
  EXPECT_EQ(t_.counters.evicted_blocks, 0u);
}

// --- What policies are told ---

TEST_F(AdmissionTest, ALeaseTellsWhatItMissesAndItsReserveHasTheSameStamp) {
  const TestPrompt first = t_.Prompt("t", 1, 2);
  t_.Put(first);
  const TestPrompt prompt = t_.Branch(first, 2, 2, 3);
  log_ = {};
  const LookupAnswer leased = t_.Lease(prompt);
  ASSERT_EQ(log_.missed.size(), 3u);
  for (uint32_t i = 0; i < 3; ++i) {
    const auto& [traits, stamp] = log_.missed[i];
    EXPECT_EQ(traits.key, PolicyKey(prompt.keys[2 + i]));
    EXPECT_EQ(traits.depth, 2 + i);
    EXPECT_EQ(traits.prompt_hits, 2u);
    EXPECT_EQ(traits.prompt_blocks, 5u);
    EXPECT_EQ(traits.bytes, kBlockBytes);
    EXPECT_EQ(traits.tokens, TestStore::kBlockTokens);
  }
  EXPECT_EQ(t_.Put(prompt), 3u);
  ASSERT_EQ(log_.inserted.size(), 3u);
  EXPECT_EQ(log_.inserted[0].first.key, log_.missed[0].first.key);
  EXPECT_EQ(log_.inserted[0].first.depth, 2u);
  EXPECT_EQ(log_.inserted[0].first.prompt_hits, 2u);
  EXPECT_EQ(log_.inserted[0].first.prompt_blocks, 5u);
  const UseStamp stamp = log_.missed[0].second;
  EXPECT_EQ(log_.inserted[2].second, stamp);
  EXPECT_THAT(log_.used, IsEmpty());
  ASSERT_TRUE(t_.store->EndLease("t", *leased.lease, 0, {2u}).ok());
  EXPECT_THAT(log_.used, ElementsAre(stamp, stamp));
}

TEST_F(AdmissionTest, RequestsOfSeveralWorkersAtOnceAreToldApart) {
  t_.Put(t_.Prompt("t", 9, 1));
  const TestPrompt one = t_.Prompt("t", 1, 2);
  const TestPrompt other = t_.Prompt("t", 2, 2);
  for (TestPrompt prompt : {one, other}) {
    prompt.keys.resize(1);
    prompt.tokens.resize(TestStore::kBlockTokens);
    t_.Put(prompt);
  }
  log_ = {};
  const LookupAnswer first = t_.Lease(one);
  const LookupAnswer second = t_.Lease(other);
  ASSERT_EQ(log_.missed.size(), 2u);
  const UseStamp stamps[] = {log_.missed[0].second, log_.missed[1].second};
  ASSERT_LT(stamps[0], stamps[1]);
  t_.Put(one);
  t_.Put(other);
  ASSERT_EQ(log_.inserted.size(), 2u);
  EXPECT_EQ(log_.inserted[0].second, stamps[0]);
  EXPECT_EQ(log_.inserted[1].second, stamps[1]);
  ASSERT_TRUE(t_.store->EndLease("t", *second.lease, 0, {1u}).ok());
  ASSERT_TRUE(t_.store->EndLease("t", *first.lease, 0, {1u}).ok());
  EXPECT_THAT(log_.used, ElementsAre(stamps[1], stamps[0]));
}

TEST_F(AdmissionTest, EachLookupThatUsesBlocksIsARequestAndEachReserveWithoutOne) {
  const TestPrompt prompt = t_.Prompt("t", 1, 2);
  t_.Put(prompt);
  const UseStamp put = log_.inserted[0].second;
  t_.Lookup("t", prompt, /*touch=*/true);
  t_.Lookup("t", prompt, /*touch=*/true);
  EXPECT_THAT(log_.used, ElementsAre(put + 1, put + 1, put + 2, put + 2));
  // The reserve of what a lookup missed is no request of its own, another is.
  const TestPrompt missed = t_.Prompt("t", 2, 1);
  t_.Lookup("t", missed, /*touch=*/true);
  t_.Put(t_.Prompt("t", 3, 1));
  t_.Put(missed);
  EXPECT_EQ(log_.inserted[2].second, put + 4);
  EXPECT_EQ(log_.inserted[3].second, put + 3);
}

TEST_F(AdmissionTest, WhatALookupTouchesIsUsedAfterItsMissesAreTold) {
  const TestPrompt prompt = t_.Prompt("t", 1, 3);
  TestPrompt first = prompt;
  first.keys.resize(2);
  first.tokens.resize(2 * TestStore::kBlockTokens);
  t_.Put(first);
  log_ = {};
  t_.Lookup("t", prompt, /*touch=*/true);
  ASSERT_EQ(log_.missed.size(), 1u);
  EXPECT_EQ(log_.used.size(), 2u);
  EXPECT_EQ(log_.missed_before_uses, 1u);
}

// Told of the block before it only where that is present in its class: handles are given out in
// order.
TEST_F(AdmissionTest, AMissAndANewcomerAreToldWithTheBlockBeforeThem) {
  const TestPrompt prompt = t_.Prompt("t", 1, 4);
  TestPrompt first = prompt;
  first.keys.resize(2);
  first.tokens.resize(2 * TestStore::kBlockTokens);
  t_.Put(first);
  ASSERT_EQ(log_.inserted.size(), 2u);
  EXPECT_EQ(log_.inserted[0].first.parent, kNoBlock);
  const BlockHandle second = log_.inserted[1].first.parent + 1;
  t_.Lookup("t", prompt, /*touch=*/true);
  ASSERT_EQ(log_.missed.size(), 2u);
  EXPECT_EQ(log_.missed[0].first.parent, second);
  EXPECT_EQ(log_.missed[1].first.parent, kNoBlock);
  t_.Put(prompt);
  ASSERT_EQ(log_.inserted.size(), 4u);
  EXPECT_EQ(log_.inserted[2].first.parent, second);
  EXPECT_EQ(log_.inserted[3].first.parent, second + 1);
}

TEST_F(AdmissionTest, AProbeIsNoRequest) {
  t_.Put(t_.Prompt("t", 1, 1));
  log_ = {};
  t_.Present(t_.Prompt("t", 2, 2));
  EXPECT_THAT(log_.missed, IsEmpty());
  t_.Put(t_.Prompt("t", 3, 1));
  const UseStamp before = log_.inserted[0].second;
  t_.Present(t_.Prompt("t", 2, 2));
  t_.Put(t_.Prompt("t", 4, 1));
  EXPECT_EQ(log_.inserted[1].second, before + 1);
}

TEST_F(AdmissionTest, APromptAskedForInPartsHasOneDepth) {
  const TestPrompt whole = t_.Prompt("t", 1, 4);
  TestPrompt first = whole;
  first.keys.resize(3);
  first.tokens.resize(3 * TestStore::kBlockTokens);
  t_.Put(first);
  TestPrompt rest = whole;
  rest.keys.erase(rest.keys.begin(), rest.keys.begin() + 2);
  rest.tokens.erase(rest.tokens.begin(), rest.tokens.begin() + 2 * TestStore::kBlockTokens);
  log_ = {};
  t_.Lookup("t", rest, /*touch=*/true);
  ASSERT_EQ(log_.missed.size(), 1u);
  EXPECT_EQ(log_.missed[0].first.depth, 3u);
  EXPECT_EQ(log_.missed[0].first.prompt_hits, 3u);
  EXPECT_EQ(log_.missed[0].first.prompt_blocks, 4u);
}

}  // namespace
}  // namespace cairn::node
