// Reserve: what it answers for each block, that its answers are closed by prefix, and what it
// leaves behind. Each test is a story on a small store with a fake clock.
#include <gmock/gmock.h>

#include "cache_node/store/token_table.h"
#include "common/base/check.h"
#include "tests/cache_node/store/test_store.h"
#include "tests/testing/truncating_block_hasher.h"

namespace cairn::node {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kBlockBytes = 1024;  // 4 in a memory segment, 64 in the pool.

class ReserveTest : public ::testing::Test {
 protected:
  ReserveTest() { t_.Register(TestStore::Shape(kBlockBytes)); }

  std::vector<ReserveOutcome> Outcomes(const TestPrompt& prompt, size_t from = 0,
                                       size_t count = SIZE_MAX) {
    const auto answer = t_.Reserve(prompt, from, count);
    CAIRN_CHECK_OK(answer.status());
    return answer->outcomes;
  }

  TestStore t_;
};

constexpr ReserveOutcome kReserved = ReserveOutcome::kReserved;
constexpr ReserveOutcome kPresent = ReserveOutcome::kPresent;
constexpr ReserveOutcome kInProgress = ReserveOutcome::kInProgress;
constexpr ReserveOutcome kUndecided = ReserveOutcome::kUndecided;

TEST_F(ReserveTest, NewBlocksAreReservedUnderOneTokenAndCharged) {
  const TestPrompt prompt = t_.Prompt("t", 1, 3);
  const auto answer = t_.Reserve(prompt);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(answer->outcomes, ElementsAre(kReserved, kReserved, kReserved));
  EXPECT_TRUE(answer->token.has_value());
  EXPECT_EQ(answer->token_ttl, absl::Seconds(30));
  EXPECT_EQ(t_.store->Status().reserved_bytes, 3 * kBlockBytes);
  EXPECT_EQ(t_.store->Tenants()[0].charged_bytes, 3 * kBlockBytes);
  EXPECT_EQ(t_.Present(prompt), 0u);
  EXPECT_TRUE(t_.store->Audit().ok()) << t_.store->Audit();
}

TEST_F(ReserveTest, PresentAndInProgressBlocksArePassedOverAndCountAsParents) {
  const TestPrompt prompt = t_.Prompt("t", 1, 4);
  TestPrompt first = prompt;
  first.keys.resize(1);
  first.tokens.resize(TestStore::kBlockTokens);
  ASSERT_EQ(t_.Put(first), 1u);
  EXPECT_THAT(Outcomes(prompt, 0, 2), ElementsAre(kPresent, kReserved));
  t_.Advance(absl::Seconds(3));
  const auto answer = t_.Reserve(prompt);
  ASSERT_TRUE(answer.ok());
  EXPECT_THAT(answer->outcomes, ElementsAre(kPresent, kInProgress, kReserved, kReserved));
  EXPECT_EQ(answer->in_progress_for[1], absl::Seconds(3));
}

TEST_F(ReserveTest, SixteenWritersOfOneKeyGetOneReservation) {
  const TestPrompt prompt = t_.Prompt("t", 1, 1);
  EXPECT_THAT(Outcomes(prompt), ElementsAre(kReserved));
  for (int i = 0; i < 15; ++i) EXPECT_THAT(Outcomes(prompt), ElementsAre(kInProgress));
  EXPECT_EQ(t_.counters.reserved_blocks, 1u);
}

TEST_F(ReserveTest, NothingIsReservedAfterAKeyThatTheNodeComputesOtherwise) {
  const TestPrompt prompt = t_.Prompt("t", 1, 4);
  ReserveQuery query = t_.Plan(prompt);
  query.mismatch_at = 2;
  const auto answer = t_.store->Reserve("t", t_.fingerprint(), query);
  ASSERT_TRUE(answer.ok());
  EXPECT_THAT(answer->outcomes,
              ElementsAre(kReserved, kReserved, ReserveOutcome::kKeyMismatch, kUndecided));
  EXPECT_EQ(t_.store->Status().reserved_bytes, 2 * kBlockBytes);
  EXPECT_EQ(t_.counters.key_mismatches, 1u);
}

TEST_F(ReserveTest, ABlockWithoutItsParentIsRefusedAndGetsNoToken) {
  const TestPrompt prompt = t_.Prompt("t", 1, 4);
  const auto answer = t_.Reserve(prompt, 2);
  ASSERT_TRUE(answer.ok());
  EXPECT_THAT(answer->outcomes, ElementsAre(ReserveOutcome::kParentMissing, kUndecided));
  EXPECT_FALSE(answer->token.has_value());
  EXPECT_EQ(t_.store->Status().host_used_bytes, 0u);
}

TEST_F(ReserveTest, AParentOfAnotherScopeIsNoParentExceptWhereTheScopeBegins) {
  const TestPrompt other = t_.Prompt("t", 1, 1, "salt");
  ASSERT_EQ(t_.Put(other), 1u);
  ReserveQuery query = t_.Plan(t_.Prompt("t", 2, 1));
  query.parent = other.keys[0];
  query.enters_scope = false;
  auto answer = t_.store->Reserve("t", t_.fingerprint(), query);
  ASSERT_TRUE(answer.ok());
  EXPECT_THAT(answer->outcomes, ElementsAre(ReserveOutcome::kParentMissing));
  query.enters_scope = true;
  answer = t_.store->Reserve("t", t_.fingerprint(), query);
  ASSERT_TRUE(answer.ok());
  EXPECT_THAT(answer->outcomes, ElementsAre(kReserved));
}

TEST_F(ReserveTest, ATenantsRegionFollowsAPublicBlockButNotAnotherTenants) {
  const TestPrompt shared = t_.Prompt("public", 1, 2);
  const TestPrompt foreign = t_.Prompt("u", 1, 2);
  ASSERT_EQ(t_.Put(shared), 2u);
  ASSERT_EQ(t_.Put(foreign), 2u);
  EXPECT_THAT(Outcomes(t_.After(shared, "t", 3, 1)), ElementsAre(kReserved));
  EXPECT_THAT(Outcomes(t_.After(foreign, "t", 3, 1)), ElementsAre(ReserveOutcome::kParentMissing));
}

TEST_F(ReserveTest, WhenAllIsHeldNoSpaceIsSaidAtOnceWithARetryDelay) {
  BlockStore::Options options;
  options.reserved_bytes_max = uint64_t{1} << 30;
  TestStore t({.store = options});
  t.Register(TestStore::Shape(kBlockBytes));
  const TestPrompt prompt = t.Prompt("t", 1, 70);
  const auto answer = t.Reserve(prompt);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->outcomes[63], kReserved);
  EXPECT_EQ(answer->outcomes[64], ReserveOutcome::kNoSpace);
  EXPECT_EQ(answer->outcomes[65], kUndecided);
  EXPECT_EQ(answer->retry_after, options.retry_after);
  EXPECT_EQ(t.counters.refused_no_space, 1u);
  EXPECT_TRUE(t.store->Audit().ok()) << t.store->Audit();
}

TEST_F(ReserveTest, OverTheBudgetOfReservedBytesItIsQuota) {
  const auto answer = t_.Reserve(t_.Prompt("t", 1, 40));  // The budget is half of 64 blocks.
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->outcomes[31], kReserved);
  EXPECT_EQ(answer->outcomes[32], ReserveOutcome::kQuota);
  EXPECT_GT(answer->retry_after, absl::ZeroDuration());
  EXPECT_EQ(t_.counters.refused_quota, 1u);
}

TEST_F(ReserveTest, OverTheIndexMemoryOldBlocksGoAndWhenNoneMayItIsNoSpace) {
  BlockStore::Options options;
  options.index_bytes_max = 3000;
  TestStore t({.store = options});
  t.Register(TestStore::Shape(kBlockBytes));
  const size_t fitting = t.Put(t.Prompt("t", 1, 60));
  EXPECT_GT(fitting, 1u);
  EXPECT_LT(fitting, 20u);
  EXPECT_LE(t.store->Status().index_bytes, 3000u);
  EXPECT_EQ(t.Put(t.Prompt("t", 2, 1)), 1u);
  EXPECT_EQ(t.counters.evicted_blocks, 1u);
  EXPECT_LE(t.store->Status().index_bytes, 3000u);
}

class Declines final : public EvictionPolicyFactory {
 public:
  std::unique_ptr<EvictionPolicy> Make() const override {
    class Policy final : public EvictionPolicy {
     public:
      absl::string_view name() const override { return "declines deep blocks"; }
      bool Admits(const BlockTraits& newcomer, UseStamp, const Victim*) override {
        return newcomer.depth < 2;
      }
      void Inserted(BlockHandle, const BlockTraits&, UseStamp) override {}
      void Used(BlockHandle, UseStamp) override {}
      void MayGo(BlockHandle) override {}
      void MustStay(BlockHandle) override {}
      void Orphaned(BlockHandle, bool) override {}
      void PriorityChanged(BlockHandle, uint8_t) override {}
      void Removed(BlockHandle) override {}
      std::optional<Victim> NextVictim() override { return std::nullopt; }
    };
    return std::make_unique<Policy>();
  }
};

TEST_F(ReserveTest, ABlockThatThePolicyDoesNotWantIsDeclined) {
  TestStore t({.policies = std::make_unique<Declines>()});
  t.Register(TestStore::Shape(kBlockBytes));
  const auto answer = t.Reserve(t.Prompt("t", 1, 4));
  ASSERT_TRUE(answer.ok());
  EXPECT_THAT(answer->outcomes,
              ElementsAre(kReserved, kReserved, ReserveOutcome::kDeclined, kUndecided));
  EXPECT_EQ(answer->retry_after, absl::ZeroDuration());
}

TEST_F(ReserveTest, MalformedCallsAreRefusedAndLeaveNothing) {
  const TestPrompt prompt = t_.Prompt("t", 1, 2);
  ReserveQuery twice = t_.Plan(prompt);
  twice.keys[1] = twice.keys[0];
  ReserveQuery none;
  ReserveQuery few_tokens = t_.Plan(prompt);
  few_tokens.tokens.pop_back();
  ReserveQuery own_parent = t_.Plan(prompt);
  own_parent.parent = own_parent.keys[1];
  ReserveQuery too_many = t_.Plan(prompt);
  too_many.keys.resize(5000);
  for (const ReserveQuery& query : {twice, none, few_tokens, own_parent, too_many}) {
    EXPECT_EQ(t_.store->Reserve("t", t_.fingerprint(), query).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(t_.store->Reserve("t", Fingerprint{}, t_.Plan(prompt)).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(t_.store->Status().host_used_bytes, 0u);
  EXPECT_TRUE(t_.Quiet().ok()) << t_.Quiet();
}

TEST_F(ReserveTest, TokensAreBounded) {
  BlockStore::Options options;
  options.tokens_max = 2;
  TestStore t({.store = options});
  t.Register(TestStore::Shape(kBlockBytes));
  ASSERT_TRUE(t.Reserve(t.Prompt("t", 1, 1)).ok());
  ASSERT_TRUE(t.Reserve(t.Prompt("t", 2, 1)).ok());
  EXPECT_EQ(t.Reserve(t.Prompt("t", 3, 1)).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(ReserveTest, AKeyThatStandsForOtherTokensIsDeclinedAndNeverReadAsThem) {
  const testing::TruncatingBlockHasher hasher(4);
  TestStore t({.hasher = &hasher});
  t.Register(TestStore::Shape(kBlockBytes));
  const TestPrompt mine = t.Prompt("t", 1, 1);
  ASSERT_EQ(t.Put(mine), 1u);
  uint32_t seed = 2;
  while (t.Prompt("t", seed, 1).keys[0] != mine.keys[0]) ++seed;
  const TestPrompt other = t.Prompt("t", seed, 1);
  const auto answer = t.Reserve(other);
  ASSERT_TRUE(answer.ok());
  EXPECT_THAT(answer->outcomes, ElementsAre(ReserveOutcome::kDeclined));
  EXPECT_THAT(t.States(other), ElementsAre(BlockState::kTokensDiffer));
  EXPECT_EQ(t.Present(other), 0u);
  EXPECT_EQ(t.Present(mine), 1u);
  EXPECT_GE(t.counters.token_collisions, 2u);
}

TEST_F(ReserveTest, ABlockCannotBecomeItsOwnAncestor) {
  // Ids that an engine makes up may come in any order: here the parent of the first becomes its
  // child.
  Namespace fields = TestStore::Shape(kBlockBytes, "external");
  fields.key_scheme = KeyScheme::kExternal;
  t_.Register(fields);
  const BlockKey a = *BlockKey::FromBytes("aaaaaaaaaaaaaaaa");
  const BlockKey b = *BlockKey::FromBytes("bbbbbbbbbbbbbbbb");
  ReserveQuery chain;
  chain.keys = {a, b};
  const auto first = t_.store->Reserve("t", t_.fingerprint(), chain);
  ASSERT_TRUE(first.ok());
  for (uint32_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(t_.WriteBlock("t", *first->token, chain.keys[i], i).ok());
    ASSERT_TRUE(t_.CommitBlock("t", *first->token, chain.keys[i], i).ok());
  }
  ASSERT_TRUE(t_.store->Delete("t", t_.fingerprint(), {a}).ok());
  ReserveQuery circle;
  circle.keys = {a};
  circle.parent = b;
  const auto answer = t_.store->Reserve("t", t_.fingerprint(), circle);
  ASSERT_TRUE(answer.ok());
  EXPECT_THAT(answer->outcomes, ElementsAre(ReserveOutcome::kDeclined));
  EXPECT_TRUE(t_.store->Audit().ok()) << t_.store->Audit();
}

TEST(TokenBoundsTest, TokensWhoseBlocksArePresentMakeRoomForNewOnes) {
  TestStoreOptions options;
  options.store.tokens_max = 2;
  TestStore t(std::move(options));
  t.Register(TestStore::Shape(kBlockBytes));
  for (uint32_t i = 0; i < 5; ++i) ASSERT_EQ(t.Put(t.Prompt("t", i, 2)), 2u) << i;
  // Those that still reserve are not forgotten for others.
  ASSERT_TRUE(t.Reserve(t.Prompt("t", 10, 1)).ok());
  ASSERT_TRUE(t.Reserve(t.Prompt("t", 11, 1)).ok());
  const auto refused = t.Reserve(t.Prompt("t", 12, 1));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted) << refused.status();
  t.AdvancePastEverything();
  EXPECT_TRUE(t.Quiet().ok()) << t.Quiet();
}

TEST(TokenBoundsTest, TheBlocksThatAllTokensNameAreBounded) {
  constexpr size_t kKeys = 4096;
  TestStoreOptions options;
  options.pool_bytes = 16 * 65536;
  TestStore t(std::move(options));
  t.Register(TestStore::Shape(64));
  const TestPrompt prefix = t.Prompt("t", 1, kKeys - 1);
  ASSERT_EQ(t.Put(prefix), kKeys - 1);
  std::vector<TestPrompt> prompts;
  std::vector<TokenId> tokens;
  absl::Status refused;
  for (uint32_t i = 0; i < 300 && refused.ok(); ++i) {
    prompts.push_back(t.Branch(prefix, kKeys - 1, 100 + i, 1));
    const auto answer = t.Reserve(prompts.back());
    refused = answer.status();
    if (answer.ok()) tokens.push_back(*answer->token);
  }
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
  EXPECT_EQ(tokens.size(), TokenTable::kBlocksMax / kKeys);
  ASSERT_TRUE(t.WriteBlock("t", tokens[0], prompts[0].keys.back(), kKeys - 1).ok());
  ASSERT_TRUE(t.CommitBlock("t", tokens[0], prompts[0].keys.back(), kKeys - 1).ok());
  EXPECT_TRUE(t.Reserve(prompts.back()).ok());
}

}  // namespace
}  // namespace cairn::node
