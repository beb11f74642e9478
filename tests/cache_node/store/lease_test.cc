// Lookups with and without leases: what is seen, what is held, and for how long. Each test is a
// story on a small store with a fake clock.
#include <gmock/gmock.h>
#include <malloc.h>

#include <thread>

#include "common/base/check.h"
#include "tests/cache_node/store/test_store.h"

namespace cairn::node {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kBlockBytes = 1024;  // 64 in the pool.

class LeaseTest : public ::testing::Test {
 protected:
  LeaseTest() {
    t_.Register(TestStore::Shape(kBlockBytes));
    prompt_ = t_.Prompt("t", 1, 4);
    CAIRN_CHECK(t_.Put(prompt_) == 4);
  }

  absl::StatusOr<LeaseStatus> End(const LeaseId& lease, uint32_t reader, uint32_t usable) {
    return t_.store->EndLease("t", lease, reader, {usable});
  }
  void Audit() { EXPECT_TRUE(t_.store->Audit().ok()) << t_.store->Audit(); }

  TestStore t_;
  TestPrompt prompt_;
};

TEST_F(LeaseTest, OnlyConsecutiveBlocksFromTheStartCount) {
  const auto removed = t_.store->Delete("t", t_.fingerprint(), {prompt_.keys[1]});
  ASSERT_TRUE(removed.ok());
  const LookupAnswer answer = t_.Lookup("t", prompt_);
  EXPECT_EQ(answer.prompts[0].present, 1u);
  EXPECT_THAT(t_.States(prompt_), ElementsAre(BlockState::kHost, BlockState::kDeleted,
                                              BlockState::kHost, BlockState::kHost));
  const LookupAnswer leased = t_.Lease(prompt_);
  EXPECT_EQ(leased.prompts[0].leased, 1u);
  EXPECT_EQ(leased.prompts[0].blocks[2].state, BlockState::kNotLeased);
}

TEST_F(LeaseTest, ALookupOfAnUnknownNamespaceIsAMissThatSaysSo) {
  LookupQuery query;
  query.prompts.push_back({.keys = prompt_.keys});
  query.lease = LeaseWish{};
  const LookupAnswer answer = t_.store->Lookup("t", Fingerprint{}, query);
  EXPECT_FALSE(answer.namespace_known);
  EXPECT_EQ(answer.prompts[0].blocks[3].state, BlockState::kNamespaceUnknown);
  EXPECT_FALSE(answer.lease.has_value());
}

TEST_F(LeaseTest, TenantsDoNotSeeEachOtherAndAllSeePublic) {
  EXPECT_EQ(t_.PresentFor("u", prompt_), 0u);
  EXPECT_FALSE(t_.Pin("u", prompt_.keys[0]));
  const TestPrompt shared = t_.Prompt("public", 2, 2);
  ASSERT_EQ(t_.Put(shared), 2u);
  EXPECT_EQ(t_.PresentFor("u", shared), 2u);
  EXPECT_TRUE(t_.Intact(t_.Pin("u", shared.keys[1]), shared.keys[1]));
  // One prompt over both: the public blocks, then the tenant's own.
  TestPrompt tail = t_.After(shared, "t", 3, 2);
  ASSERT_EQ(t_.Put(tail), 2u);
  LookupQuery query;
  query.prompts.resize(1);
  query.prompts[0].keys = shared.keys;
  query.prompts[0].keys.insert(query.prompts[0].keys.end(), tail.keys.begin(), tail.keys.end());
  EXPECT_EQ(t_.store->Lookup("t", t_.fingerprint(), query).prompts[0].present, 4u);
  EXPECT_EQ(t_.store->Lookup("u", t_.fingerprint(), query).prompts[0].present, 2u);
}

TEST_F(LeaseTest, ALeaseIsItsTenantsAlone) {
  const LookupAnswer leased = t_.Lease(prompt_);
  ASSERT_TRUE(leased.lease.has_value());
  EXPECT_EQ(t_.store->GetLease("u", *leased.lease).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(t_.store->EndLease("u", *leased.lease, 0, {0}).status().code(),
            absl::StatusCode::kAborted);
  EXPECT_FALSE(t_.Pin("u", prompt_.keys[0], leased.lease));
  EXPECT_TRUE(t_.Pin("t", prompt_.keys[0], leased.lease));
}

TEST_F(LeaseTest, LeasedBlocksStayUnderPressureAndGoAfterTheLeaseEnds) {
  const LookupAnswer leased = t_.Lease(prompt_);
  for (uint32_t i = 0; i < 10; ++i) t_.Put(t_.Prompt("t", 100 + i, 30));
  EXPECT_EQ(t_.Present(prompt_), 4u);
  for (const BlockKey& key : prompt_.keys) {
    EXPECT_TRUE(t_.Intact(t_.Pin("t", key, leased.lease), key));
  }
  ASSERT_TRUE(End(*leased.lease, 0, 4).ok());
  for (uint32_t i = 0; i < 10; ++i) t_.Put(t_.Prompt("t", 200 + i, 30));
  EXPECT_EQ(t_.Present(prompt_), 0u);
  EXPECT_EQ(t_.States(prompt_)[0], BlockState::kEvicted);
  Audit();
}

TEST_F(LeaseTest, TheLeaseEndsWithItsLastReaderAndTellsTheMinimum) {
  const LeaseId lease = *t_.Lease(prompt_, 4).lease;
  EXPECT_FALSE(End(lease, 0, 4)->complete);
  EXPECT_FALSE(End(lease, 2, 1)->complete);
  EXPECT_FALSE(End(lease, 1, 3)->complete);
  EXPECT_EQ(t_.store->Status().pins, 4u);
  const auto last = End(lease, 3, 2);
  ASSERT_TRUE(last.ok());
  EXPECT_TRUE(last->complete);
  EXPECT_THAT(last->usable_blocks, ElementsAre(1u));
  EXPECT_EQ(t_.store->Status().pins, 0u);
  EXPECT_EQ(t_.store->Status().leases, 0u);
  const auto later = t_.store->GetLease("t", lease);
  ASSERT_TRUE(later.ok());
  EXPECT_THAT(later->usable_blocks, ElementsAre(1u));
  EXPECT_EQ(later->readers_ended, 4u);
}

TEST_F(LeaseTest, EndingAShareTwiceChangesNothing) {
  const LeaseId lease = *t_.Lease(prompt_, 2).lease;
  ASSERT_TRUE(End(lease, 0, 3).ok());
  const auto again = End(lease, 0, 1);
  ASSERT_TRUE(again.ok());
  EXPECT_FALSE(again->complete);
  EXPECT_EQ(again->readers_ended, 1u);
  EXPECT_THAT(End(lease, 1, 4)->usable_blocks, ElementsAre(3u));
  EXPECT_THAT(End(lease, 1, 0)->usable_blocks, ElementsAre(3u));
}

TEST_F(LeaseTest, AShareThatExpiresCountsZeroAndTheLeaseEndsWithoutAUse) {
  const LeaseId lease = *t_.Lease(prompt_, 2).lease;
  ASSERT_TRUE(End(lease, 0, 4).ok());
  t_.Advance(absl::Seconds(9));
  EXPECT_EQ(t_.store->Status().pins, 4u);
  t_.Advance(absl::Seconds(2));
  EXPECT_EQ(t_.store->Status().pins, 0u);
  const auto status = t_.store->GetLease("t", lease);
  ASSERT_TRUE(status.ok());
  EXPECT_TRUE(status->complete);
  EXPECT_THAT(status->usable_blocks, ElementsAre(0u));
  EXPECT_EQ(End(lease, 1, 4).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(t_.counters.expired_shares, 1u);
  t_.Advance(absl::Minutes(1));
  EXPECT_EQ(t_.store->GetLease("t", lease).status().code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(t_.Quiet().ok()) << t_.Quiet();
}

TEST_F(LeaseTest, ARenewedShareLivesOnAndOnlyItsOwn) {
  const LeaseId lease = *t_.Lease(prompt_, 2).lease;
  t_.Advance(absl::Seconds(8));
  EXPECT_EQ(*t_.store->RenewLease("t", lease, 1, absl::Seconds(20)), absl::Seconds(20));
  t_.Advance(absl::Seconds(8));
  EXPECT_EQ(t_.store->RenewLease("t", lease, 0, absl::Seconds(20)).status().code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(t_.store->GetLease("t", lease)->readers_ended, 1u);
  EXPECT_TRUE(t_.Pin("t", prompt_.keys[0], lease));
  EXPECT_TRUE(End(lease, 1, 4).ok());
  EXPECT_THAT(t_.store->GetLease("t", lease)->usable_blocks, ElementsAre(0u));
}

TEST_F(LeaseTest, TheTimeToLiveIsBounded) {
  const LookupAnswer leased = t_.Lease(prompt_, 1, absl::Hours(5));
  EXPECT_EQ(leased.lease_ttl, absl::Minutes(10));
  EXPECT_EQ(*t_.store->RenewLease("t", *leased.lease, 0, absl::Hours(5)), absl::Minutes(10));
}

TEST_F(LeaseTest, AProcessThatStoodStillExtendsItsLeases) {
  const LeaseId lease = *t_.Lease(prompt_).lease;
  t_.clock.Advance(absl::Hours(1));
  t_.time.Tick();
  t_.store->Tick();
  EXPECT_TRUE(t_.Pin("t", prompt_.keys[0], lease));
}

TEST_F(LeaseTest, BadSharesAreRefused) {
  const LeaseId lease = *t_.Lease(prompt_, 2).lease;
  EXPECT_EQ(End(lease, 2, 0).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(End(lease, 0, 5).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(t_.store->EndLease("t", lease, 0, {1, 1}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(t_.store->GetLease("t", lease)->readers_ended, 0u);
}

TEST_F(LeaseTest, ALeaseIsCutToThePrefixThatTheBudgetAllows) {
  BlockStore::Options options;
  options.leased_bytes_max = 3 * kBlockBytes;
  TestStore t({.store = options});
  t.Register(TestStore::Shape(kBlockBytes));
  const TestPrompt prompt = t.Prompt("t", 1, 4);
  ASSERT_EQ(t.Put(prompt), 4u);
  const LookupAnswer cut = t.Lease(prompt);
  EXPECT_EQ(cut.prompts[0].present, 4u);
  EXPECT_EQ(cut.prompts[0].leased, 3u);
  EXPECT_EQ(cut.prompts[0].blocks[3].state, BlockState::kNotLeased);
  EXPECT_FALSE(t.Pin("t", prompt.keys[3], cut.lease));
  const LookupAnswer none = t.Lease(prompt);
  EXPECT_EQ(none.prompts[0].present, 4u);
  EXPECT_EQ(none.prompts[0].leased, 0u);
  EXPECT_FALSE(none.lease.has_value());
  t.AdvancePastEverything();
  EXPECT_EQ(t.Lease(prompt).prompts[0].leased, 3u);
}

TEST_F(LeaseTest, PromptsWithACommonPrefixShareItsPinsAndBytes) {
  const TestPrompt branch = t_.Branch(prompt_, 3, 9, 2);
  ASSERT_EQ(t_.Put(branch), 2u);
  LookupQuery query;
  query.prompts = {{.keys = prompt_.keys}, {.keys = branch.keys}};
  query.lease = LeaseWish{};
  const LookupAnswer leased = t_.store->Lookup("t", t_.fingerprint(), query);
  EXPECT_EQ(leased.prompts[0].leased, 4u);
  EXPECT_EQ(leased.prompts[1].leased, 5u);
  EXPECT_EQ(t_.store->Status().pins, 6u);
  EXPECT_EQ(t_.store->Tenants()[0].leased_bytes, 6 * kBlockBytes);
  Audit();
}

TEST_F(LeaseTest, LeasesAreBounded) {
  BlockStore::Options options;
  options.leases_max = 1;
  TestStore t({.store = options});
  t.Register(TestStore::Shape(kBlockBytes));
  const TestPrompt prompt = t.Prompt("t", 1, 1);
  ASSERT_EQ(t.Put(prompt), 1u);
  EXPECT_TRUE(t.Lease(prompt).lease.has_value());
  const LookupAnswer refused = t.Lease(prompt);
  EXPECT_FALSE(refused.lease.has_value());
  EXPECT_EQ(refused.prompts[0].blocks[0].state, BlockState::kNotLeased);
}

TEST_F(LeaseTest, ALeaseDoesNotCoverWhatItsLookupDidNotFind) {
  const TestPrompt other = t_.Prompt("t", 2, 1);
  ASSERT_EQ(t_.Put(other), 1u);
  const LeaseId lease = *t_.Lease(prompt_).lease;
  const auto answer = t_.store->PinForRead("t", t_.fingerprint(), lease, other.keys[0]);
  ASSERT_TRUE(answer.ok());
  EXPECT_FALSE(answer->pin);
  EXPECT_EQ(answer->state, BlockState::kNotLeased);
}

TEST_F(LeaseTest, APinOutlivesItsLeaseAndItsBlock) {
  const LeaseId lease = *t_.Lease(prompt_).lease;
  BlockPin pin = t_.Pin("t", prompt_.keys[3], lease);
  t_.AdvancePastEverything();
  for (uint32_t i = 0; i < 10; ++i) t_.Put(t_.Prompt("t", 100 + i, 30));
  EXPECT_TRUE(t_.Intact(pin, prompt_.keys[3]));
  EXPECT_TRUE(pin.readable());
  pin = BlockPin();
  t_.AdvancePastEverything();
  EXPECT_TRUE(t_.Quiet().ok()) << t_.Quiet();
}

TEST_F(LeaseTest, CountersOfTokensMoveByExactNumbers) {
  t_.counters.looked_up_tokens = 0;
  t_.counters.hit_tokens = 0;
  const TestPrompt longer = t_.Branch(prompt_, 4, 9, 2);
  t_.Lookup("t", longer);
  EXPECT_EQ(t_.counters.looked_up_tokens, 6u * TestStore::kBlockTokens);
  EXPECT_EQ(t_.counters.hit_tokens, 4u * TestStore::kBlockTokens);
}

TEST_F(LeaseTest, ALongLookupIsAnsweredWholeAcrossManySteps) {
  LookupQuery query;
  query.prompts.resize(3);
  for (PromptQuery& prompt : query.prompts) {
    prompt.keys = prompt_.keys;
    for (uint32_t i = 0; i < 700; ++i) prompt.keys.push_back(t_.Prompt("t", 1000 + i, 1).keys[0]);
  }
  query.prompts[1].keys.clear();
  query.lease = LeaseWish{};
  const LookupAnswer answer = t_.store->Lookup("t", t_.fingerprint(), query);
  EXPECT_EQ(answer.prompts[0].leased, 4u);
  EXPECT_EQ(answer.prompts[1].blocks.size(), 0u);
  EXPECT_EQ(answer.prompts[2].leased, 4u);
  EXPECT_EQ(answer.prompts[2].blocks[703].state, BlockState::kNeverSeen);
}

TEST(LeaseBoundsTest, ALeaseIsNotForgottenWhileItIsGivenBack) {
  TestStore t;
  BlockStore::Options options;
  options.leased_bytes_max = kBlockBytes - 1;  // So the lease is over as it is made.
  bool ticked = true;
  BlockStore::Signals signals;
  signals.settled = [&] {  // Between the sections of the call under way.
    if (std::exchange(ticked, true)) return;
    std::thread([&] { t.store->Tick(); }).join();
  };
  t.store = std::make_unique<BlockStore>(options, &t.time, &t.random, &t.counters,
                                         *HostMemory::Create(16 * 4096),
                                         std::make_unique<LruPolicyFactory>(), signals);
  t.Register(TestStore::Shape(kBlockBytes));
  const TestPrompt prompt = t.Prompt("t", 1, 1);
  ASSERT_EQ(t.Put(prompt), 1u);
  ticked = false;
  const LookupAnswer answer = t.Lease(prompt);
  EXPECT_TRUE(ticked);
  EXPECT_FALSE(answer.lease.has_value());
  EXPECT_EQ(answer.prompts[0].leased, 0u);
  t.AdvancePastEverything();
  EXPECT_TRUE(t.Quiet().ok()) << t.Quiet();
}

TEST(LeaseBoundsTest, LeasesThatEndedMakeRoomForNewOnes) {
  TestStoreOptions options;
  options.store.leases_max = 2;
  TestStore t(std::move(options));
  t.Register(TestStore::Shape(kBlockBytes));
  const TestPrompt prompt = t.Prompt("t", 1, 1);
  ASSERT_EQ(t.Put(prompt), 1u);
  std::vector<LeaseId> leases;
  for (int i = 0; i < 5; ++i) {
    const LookupAnswer answer = t.Lease(prompt);
    ASSERT_TRUE(answer.lease.has_value()) << i;
    leases.push_back(*answer.lease);
    ASSERT_TRUE(t.store->EndLease("t", leases.back(), 0, {1}).ok());
    t.Advance(absl::Milliseconds(1));
  }
  EXPECT_TRUE(t.store->GetLease("t", leases[4]).ok());
  EXPECT_TRUE(t.store->GetLease("t", leases[3]).ok());
  EXPECT_FALSE(t.store->GetLease("t", leases[2]).ok());
  // Those that still hold blocks are not forgotten for others.
  ASSERT_TRUE(t.Lease(prompt).lease.has_value());
  ASSERT_TRUE(t.Lease(prompt).lease.has_value());
  EXPECT_FALSE(t.Lease(prompt).lease.has_value());
  t.AdvancePastEverything();
  EXPECT_TRUE(t.Quiet().ok()) << t.Quiet();
}

TEST(LeaseBoundsTest, ALeaseThatEndedTakesNoMemoryForItsBlocks) {
  constexpr size_t kBlocks = 4096;
  constexpr size_t kLeases = 64;
  TestStoreOptions options;
  options.pool_bytes = kBlocks * 64;
  options.store.leased_bytes_max = options.pool_bytes;
  options.store.reserved_bytes_max = options.pool_bytes;
  TestStore t(std::move(options));
  t.Register(TestStore::Shape(64));
  const TestPrompt prompt = t.Prompt("t", 1, kBlocks);
  ASSERT_EQ(t.Put(prompt), kBlocks);
  const auto in_use = [] {
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
  };
  const size_t before = in_use();
  for (size_t i = 0; i < kLeases; ++i) {
    const LookupAnswer answer = t.Lease(prompt);
    ASSERT_EQ(answer.prompts[0].leased, kBlocks);
    ASSERT_TRUE(t.store->EndLease("t", *answer.lease, 0, {kBlocks}).ok());
  }
  EXPECT_LT(in_use(), before + kLeases * 8192);  // One lease of so many blocks takes 300 KiB.
}

}  // namespace
}  // namespace cairn::node
