// Blocks of the tenant `public` under tenants' own: who holds whom, what becomes of a tenant's
// blocks when the public ones before them leave, and what a list of prefixes keeps.
#include <gmock/gmock.h>

#include "common/base/check.h"
#include "tests/cache_node/store/test_store.h"

namespace cairn::node {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr uint64_t kBlockBytes = 1024;
constexpr uint64_t kPoolBlocks = 64;
constexpr uint64_t kBlocksPerSegment = 4;

class PublicTest : public ::testing::Test {
 protected:
  PublicTest() { t_.Register(TestStore::Shape(kBlockBytes)); }

  TestPrompt Put(const TestPrompt& prompt) {
    t_.Put(prompt);
    CAIRN_CHECK(t_.Present(prompt) == prompt.keys.size());
    return prompt;
  }
  TestPrompt PutPublic(uint32_t seed, size_t blocks) {
    return Put(t_.Prompt("public", seed, blocks));
  }
  // Consecutive blocks of both regions that the tenant is told of.
  uint32_t Reachable(const TestPrompt& shared, const TestPrompt& own) {
    TestPrompt both = own;
    both.keys = shared.keys;
    both.keys.insert(both.keys.end(), own.keys.begin(), own.keys.end());
    both.tokens = shared.tokens;
    both.tokens.insert(both.tokens.end(), own.tokens.begin(), own.tokens.end());
    return t_.PresentFor(own.tenant(), both);
  }
  // Prompts of one block.
  void PutSingles(const std::string& tenant, size_t count) {
    for (size_t i = 0; i < count; ++i) Put(t_.Prompt(tenant, ++seed_, 1));
  }
  uint64_t Keep(const absl::flat_hash_set<BlockKey>& last_keys) {
    uint64_t removed = 0;
    CAIRN_CHECK_OK(t_.store->KeepPublic(last_keys, &removed));
    EXPECT_TRUE(t_.store->Audit().ok()) << t_.store->Audit();
    return removed;
  }

  TestStore t_;
  uint32_t seed_ = 1000;
};

TEST_F(PublicTest, ATenantsBlocksDoNotKeepAPublicPrefixFromEvictionAndAreOrphansThen) {
  const TestPrompt shared = PutPublic(1, 2);
  const TestPrompt own = Put(t_.After(shared, "t", 2, 2));
  ASSERT_EQ(Reachable(shared, own), 4u);
  // The public prefix is the oldest of its tenant's; its own children held it, and it has none.
  while (t_.counters.evicted_blocks < 2) PutSingles("public", 1);
  EXPECT_THAT(t_.States(shared), Each(BlockState::kEvicted));
  EXPECT_THAT(t_.States(own), Each(BlockState::kHost)) << "there, but out of reach";
  EXPECT_EQ(Reachable(shared, own), 0u);
}

TEST_F(PublicTest, OrphansOfAPublicPrefixGoFirstAndAreUsableAgainWhenItReturns) {
  // A memory segment of public blocks, and all others of the tenant's.
  const TestPrompt shared = PutPublic(1, 2);
  PutSingles("public", kBlocksPerSegment - 2);
  const TestPrompt other = Put(t_.Prompt("t", 3, 2));
  const TestPrompt own = Put(t_.After(shared, "t", 2, 3));
  PutSingles("t", kPoolBlocks - kBlocksPerSegment - 5);
  ASSERT_EQ(t_.UsedBlocks(kBlockBytes), kPoolBlocks);
  ASSERT_EQ(Reachable(shared, own), 5u);
  ASSERT_TRUE(t_.store->Delete("public", t_.fingerprint(), {shared.keys[1]}).ok());
  EXPECT_EQ(Reachable(shared, own), 1u);
  // Not the oldest, whose prompt is whole.
  PutSingles("t", 1);
  EXPECT_EQ(t_.Present(other), 2u);
  EXPECT_THAT(t_.States(own),
              ElementsAre(BlockState::kHost, BlockState::kHost, BlockState::kEvicted));
  ASSERT_EQ(t_.Put(shared), 1u);
  EXPECT_EQ(Reachable(shared, own), 4u);
  EXPECT_TRUE(t_.store->Audit().ok()) << t_.store->Audit();
}

TEST_F(PublicTest, AListKeepsWhatLeadsToItsPrefixes) {
  const TestPrompt listed = PutPublic(1, 4);
  const TestPrompt longer = Put(t_.Branch(listed, 4, 5, 2));
  const TestPrompt branch = Put(t_.Branch(listed, 2, 6, 3));
  const TestPrompt other = PutPublic(2, 3);
  const TestPrompt own = Put(t_.After(other, "t", 3, 2));
  const TestPrompt behind = Put(t_.After(listed, "t", 4, 2));
  // Two past the listed end, three of the branch, three of the other one.
  EXPECT_EQ(Keep({listed.keys.back()}), 2u + 3u + 3u);
  EXPECT_EQ(t_.Present(longer), 4u);
  EXPECT_EQ(t_.Present(branch), 2u);
  EXPECT_THAT(t_.States(other), Each(BlockState::kDeleted));
  EXPECT_EQ(Reachable(other, own), 0u);
  EXPECT_THAT(t_.States(own), Each(BlockState::kHost)) << "the tenant's own stay, as orphans";
  EXPECT_EQ(Reachable(listed, behind), 6u);
  EXPECT_EQ(Keep({listed.keys.back()}), 0u);
  Put(other);
  EXPECT_EQ(Reachable(other, own), 5u);
}

TEST_F(PublicTest, AnEmptyListKeepsNothingPublicAndAllOfTenants) {
  PutPublic(1, 4);
  const TestPrompt own = Put(t_.Prompt("t", 1, 4));
  t_.Register(TestStore::Shape(512, "another"), "public");
  const TestPrompt other_model = PutPublic(1, 2);
  EXPECT_EQ(Keep({}), 6u);
  EXPECT_EQ(t_.Present(other_model), 0u);
  t_.Register(TestStore::Shape(kBlockBytes));
  EXPECT_EQ(t_.Present(own), 4u);
}

TEST_F(PublicTest, WhatIsJustBeingWrittenGoesToo) {
  const TestPrompt prompt = t_.Prompt("public", 1, 2);
  const absl::StatusOr<ReserveAnswer> reserved = t_.Reserve(prompt);
  ASSERT_TRUE(reserved.ok() && reserved->token.has_value());
  ASSERT_TRUE(t_.WriteBlock("public", *reserved->token, prompt.keys[0], 0).ok());
  EXPECT_EQ(Keep({}), 2u);
  const absl::StatusOr<CommitAnswer> late =
      t_.CommitBlock("public", *reserved->token, prompt.keys[0], 0);
  EXPECT_TRUE(!late.ok() || late->blocks_present == 0);
  EXPECT_EQ(t_.Present(prompt), 0u);
}

TEST_F(PublicTest, LeasesOnWhatGoesAreRevoked) {
  const TestPrompt prompt = PutPublic(1, 2);
  const LeaseId lease = *t_.Lease(prompt).lease;
  ASSERT_TRUE(t_.Pin("public", prompt.keys[0], lease));
  EXPECT_EQ(Keep({}), 2u);
  EXPECT_FALSE(t_.Pin("public", prompt.keys[0], lease));
}

TEST_F(PublicTest, MoreThanOneBatchGoes) {
  TestStore t({.pool_bytes = 16 * 4096 * 32});
  t.Register(TestStore::Shape(256), "public");
  const TestPrompt listed = t.Prompt("public", 1, 1000);
  const TestPrompt other = t.Prompt("public", 2, 2500);
  ASSERT_EQ(t.Put(listed) + t.Put(other), 3500u);
  uint64_t removed = 0;
  ASSERT_TRUE(t.store->KeepPublic({listed.keys.back()}, &removed).ok());
  EXPECT_EQ(removed, 2500u);
  EXPECT_EQ(t.Present(listed), 1000u);
}

}  // namespace
}  // namespace cairn::node
