// What is removed by someone's will: Delete, ClearScope, RetireNamespace and quarantine, and what
// readers and writers who hold it are told. Each test is a story on a small store.
#include <gmock/gmock.h>

#include "cache_node/store/scope_digest.h"
#include "common/base/check.h"
#include "tests/cache_node/store/test_store.h"

namespace cairn::node {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kBlockBytes = 1024;

class RemovalTest : public ::testing::Test {
 protected:
  RemovalTest() {
    t_.Register(TestStore::Shape(kBlockBytes));
    prompt_ = t_.Prompt("t", 1, 3);
    CAIRN_CHECK(t_.Put(prompt_) == 3);
  }

  absl::StatusOr<bool> Report(const BlockKey& key, const SegmentId& segment = {0, 0, 0}) {
    return t_.store->ReportMismatch("t", t_.fingerprint(), key, segment);
  }
  // Breaks a byte of the node's own copy.
  void Corrupt(const BlockKey& key) {
    const BlockPin pin = t_.Pin("t", key);
    CAIRN_CHECK(pin);
    const_cast<uint8_t*>(pin.bytes().data())[77] ^= 1;
  }
  void Audit() { EXPECT_TRUE(t_.store->Audit().ok()) << t_.store->Audit(); }

  TestStore t_;
  TestPrompt prompt_;
};

TEST_F(RemovalTest, DeleteAnswersForEachKeyAndOnlyOfTheCallersTenant) {
  const BlockKey absent = t_.Prompt("t", 9, 1).keys[0];
  auto removed = t_.store->Delete("u", t_.fingerprint(), {prompt_.keys[0]});
  ASSERT_TRUE(removed.ok());
  EXPECT_THAT(*removed, ElementsAre(false));
  removed = t_.store->Delete("t", t_.fingerprint(), {prompt_.keys[2], absent, prompt_.keys[0]});
  ASSERT_TRUE(removed.ok());
  EXPECT_THAT(*removed, ElementsAre(true, false, true));
  EXPECT_THAT(t_.States(prompt_),
              ElementsAre(BlockState::kDeleted, BlockState::kHost, BlockState::kDeleted));
  EXPECT_EQ(t_.store->Delete("t", t_.fingerprint(), {absent, absent}).status().code(),
            absl::StatusCode::kInvalidArgument);
  Audit();
}

TEST_F(RemovalTest, ADeletedBlockRevokesItsLeasesAndItsPinsAreUnreadable) {
  const LeaseId lease = *t_.Lease(prompt_, 2).lease;
  const LeaseId other = *t_.Lease(prompt_).lease;
  const BlockPin pin = t_.Pin("t", prompt_.keys[2], lease);
  ASSERT_TRUE(t_.store->EndLease("t", lease, 0, {3}).ok());
  ASSERT_TRUE(t_.store->Delete("t", t_.fingerprint(), {prompt_.keys[2]}).ok());
  EXPECT_FALSE(pin.readable());
  for (const LeaseId& id : {lease, other}) {
    const auto status = t_.store->GetLease("t", id);
    ASSERT_TRUE(status.ok());
    EXPECT_TRUE(status->complete);
    EXPECT_THAT(status->usable_blocks, ElementsAre(0u));
    EXPECT_FALSE(t_.Pin("t", prompt_.keys[0], id));
  }
  EXPECT_EQ(t_.store->Status().pins, 1u);
  EXPECT_TRUE(t_.store->EndLease("t", lease, 1, {3})->complete);
  EXPECT_EQ(t_.store->Status().host_used_bytes, 3 * kBlockBytes);  // The pinned slot is not reused.
  Audit();
}

TEST_F(RemovalTest, ClearScopeRemovesOneScopeOfOneTenantAndNothingElse) {
  const TestPrompt salted = t_.Prompt("t", 1, 2, "salt");
  const TestPrompt foreign = t_.Prompt("u", 1, 2);
  const TestPrompt second = t_.After(salted, "t", 5, 1);  // Same scope as prompt_, another root.
  for (const TestPrompt& prompt : {salted, foreign, second}) t_.Put(prompt);
  const auto cleared = t_.store->ClearScope("t", t_.fingerprint(), ScopeDigest(prompt_.scope));
  ASSERT_TRUE(cleared.ok());
  EXPECT_EQ(cleared->blocks, 4u);
  EXPECT_EQ(t_.Present(prompt_), 0u);
  EXPECT_EQ(t_.Present(second), 0u);
  EXPECT_EQ(t_.Present(salted), 2u);
  EXPECT_EQ(t_.Present(foreign), 2u);
  EXPECT_EQ(t_.States(prompt_)[0], BlockState::kDeleted);
  EXPECT_EQ(t_.store->ClearScope("x", t_.fingerprint(), ScopeDigest(prompt_.scope))->blocks, 0u);
  EXPECT_EQ(t_.Put(prompt_), 3u);
  Audit();
}

TEST_F(RemovalTest, ClearScopeTakesReservedBlocksTooAndTheirWritersAreAborted) {
  const TestPrompt longer = t_.Branch(prompt_, 3, 9, 1);
  const auto reserved = t_.Reserve(longer, 3);
  ASSERT_TRUE(reserved.ok());
  const auto cleared = t_.store->ClearScope("t", t_.fingerprint(), ScopeDigest(prompt_.scope));
  EXPECT_EQ(cleared->blocks, 3u);
  EXPECT_EQ(t_.WriteBlock("t", *reserved->token, longer.keys[3], 0).code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(t_.store->Status().reserved_bytes, 0u);
  EXPECT_EQ(t_.store->Status().host_used_bytes, 0u);
  Audit();
}

TEST_F(RemovalTest, BytesHeldByOthersThanLeasesAreReportedAndNotReused) {
  const LeaseId lease = *t_.Lease(prompt_).lease;
  BlockPin pin = t_.Pin("t", prompt_.keys[1], lease);
  const auto retired = t_.store->RetireNamespace(t_.fingerprint());
  ASSERT_TRUE(retired.ok());
  EXPECT_EQ(retired->blocks, 3u);
  EXPECT_EQ(retired->pinned_bytes, kBlockBytes);
  EXPECT_EQ(t_.store->Status().host_used_bytes, kBlockBytes);
  EXPECT_FALSE(pin.readable());
  pin = BlockPin();
  EXPECT_EQ(t_.store->Status().host_used_bytes, 0u);
  Audit();
}

TEST_F(RemovalTest, RetirementFencesEveryCall) {
  const LeaseId lease = *t_.Lease(prompt_).lease;
  const TestPrompt longer = t_.Branch(prompt_, 3, 9, 1);
  const auto reserved = t_.Reserve(longer, 3);
  ASSERT_TRUE(reserved.ok());
  const ReserveQuery plan = t_.Plan(longer);
  const WritePiece piece = t_.Piece(longer.keys[3], 0, {0, 0, 0}, 1);
  auto claim = t_.store->BeginWrite("t", *reserved->token, 1, piece);
  ASSERT_TRUE(claim.ok());
  ASSERT_TRUE(t_.store->RetireNamespace(t_.fingerprint()).ok());

  EXPECT_FALSE(t_.Lookup("t", prompt_).namespace_known);
  EXPECT_FALSE(t_.Pin("t", prompt_.keys[0]));
  EXPECT_FALSE(t_.Pin("t", prompt_.keys[0], lease));
  EXPECT_TRUE(t_.store->GetLease("t", lease)->complete);
  EXPECT_EQ(t_.store->Reserve("t", t_.fingerprint(), plan).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(t_.store->BeginWrite("t", *reserved->token, 1, piece).status().code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(t_.store->FinishWrite(*std::move(claim)).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(t_.store->Commit("t", *reserved->token, {piece.run}).status().code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(t_.store->FindPayloadMap(t_.fingerprint()), nullptr);
  t_.AdvancePastEverything();
  EXPECT_TRUE(t_.Quiet().ok()) << t_.Quiet();
}

TEST_F(RemovalTest, RetiringTwiceKeepsTheEpochAndRegisteringAgainRevivesItEmpty) {
  const uint64_t epoch = t_.store->RetireNamespace(t_.fingerprint())->epoch;
  EXPECT_EQ(t_.store->RetireNamespace(t_.fingerprint())->epoch, epoch);
  EXPECT_EQ(t_.store->RetireNamespace(Fingerprint{}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  t_.Register(TestStore::Shape(kBlockBytes));
  EXPECT_EQ(t_.Present(prompt_), 0u);
  EXPECT_EQ(t_.Put(prompt_), 3u);
  EXPECT_EQ(t_.Present(prompt_), 3u);
  EXPECT_EQ(t_.store->RetireNamespace(t_.fingerprint())->epoch, epoch + 1);
  Audit();
}

TEST_F(RemovalTest, ATokenOfBeforeARetirementLandsNothingInTheRevivedNamespace) {
  const auto reserved = t_.Reserve(t_.Prompt("t", 5, 1));
  ASSERT_TRUE(reserved.ok());
  ASSERT_TRUE(t_.store->RetireNamespace(t_.fingerprint()).ok());
  t_.Register(TestStore::Shape(kBlockBytes));
  EXPECT_EQ(t_.WriteBlock("t", *reserved->token, t_.Prompt("t", 5, 1).keys[0], 0).code(),
            absl::StatusCode::kAborted);
}

TEST_F(RemovalTest, AFalseReportIsOnlyCounted) {
  EXPECT_EQ(*Report(prompt_.keys[0]), false);
  EXPECT_EQ(t_.counters.reported_mismatches, 1u);
  EXPECT_EQ(t_.Present(prompt_), 3u);
  EXPECT_EQ(*Report(t_.Prompt("t", 9, 1).keys[0]), false);
  EXPECT_EQ(Report(prompt_.keys[0], {0, 3, 0}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(t_.store->Status().pins, 0u);
}

TEST_F(RemovalTest, ABadCopyIsQuarantinedAndCanBeWrittenAnew) {
  const LeaseId lease = *t_.Lease(prompt_).lease;
  const BlockPin pin = t_.Pin("t", prompt_.keys[1], lease);
  Corrupt(prompt_.keys[1]);
  EXPECT_EQ(*Report(prompt_.keys[1]), true);
  EXPECT_EQ(t_.counters.quarantined_blocks, 1u);
  EXPECT_FALSE(pin.readable());
  EXPECT_TRUE(t_.store->GetLease("t", lease)->complete);
  EXPECT_THAT(t_.States(prompt_),
              ElementsAre(BlockState::kHost, BlockState::kQuarantined, BlockState::kHost));
  EXPECT_EQ(*Report(prompt_.keys[1]), false);
  EXPECT_EQ(t_.Put(prompt_), 1u);
  EXPECT_EQ(t_.Present(prompt_), 3u);
  EXPECT_TRUE(t_.Intact(t_.Pin("t", prompt_.keys[1]), prompt_.keys[1]));
  Audit();
}

TEST_F(RemovalTest, AScopeLargerThanOneStepIsClearedWhole) {
  TestStore t({.pool_bytes = 16 * 65536});
  t.Register(TestStore::Shape(kBlockBytes));
  const TestPrompt prompt = t.Prompt("t", 1, 500);
  ASSERT_EQ(t.Put(prompt), 500u);
  EXPECT_EQ(t.store->ClearScope("t", t.fingerprint(), ScopeDigest(prompt.scope))->blocks, 500u);
  EXPECT_EQ(t.store->Status().host_used_bytes, 0u);
  EXPECT_EQ(t.Put(prompt), 500u);
  EXPECT_EQ(t.store->RetireNamespace(t.fingerprint())->blocks, 500u);
  EXPECT_TRUE(t.store->Audit().ok()) << t.store->Audit();
}

}  // namespace
}  // namespace cairn::node
