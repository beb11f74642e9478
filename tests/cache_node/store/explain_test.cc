// Why a prompt misses: a store of blocks by hand, asked about prompts that miss in each way there
// is. What another tenant holds is never part of an answer.
#include <gmock/gmock.h>

#include "cache_node/store/explain_operation.h"
#include "cache_node/store/scope_digest.h"
#include "tests/cache_node/store/test_store.h"

namespace cairn::node {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr uint64_t kBlockBytes = 1024;
constexpr uint32_t kBlockTokens = TestStore::kBlockTokens;

class ExplainTest : public ::testing::Test {
 protected:
  ExplainTest() { t_.Register(TestStore::Shape(kBlockBytes)); }

  static ExplainQuery QueryOf(const TestPrompt& prompt) {
    return {.keys = prompt.keys,
            .tokens = prompt.tokens,
            .regions = {{.first_block = 0,
                         .scope_digest = ScopeDigest(prompt.scope),
                         .is_public = prompt.tenant() == "public"}}};
  }
  ExplainAnswer Explain(const TestPrompt& prompt) {
    return t_.store->Explain(prompt.tenant(), t_.fingerprint(), QueryOf(prompt));
  }
  TestPrompt Put(const TestPrompt& prompt) {
    EXPECT_EQ(t_.Put(prompt), prompt.keys.size());
    return prompt;
  }
  // The same tokens but for those at `position`, so keys differ from there on.
  TestPrompt Changed(const TestPrompt& prompt, size_t position, size_t count) {
    TestPrompt changed = t_.Prompt(prompt.tenant(), 1, prompt.keys.size(), prompt.scope.salt);
    changed.tokens = prompt.tokens;
    for (size_t i = position; i < position + count; ++i) changed.tokens[i] += 1'000'000;
    KeyChain chain(&hasher_, {t_.fingerprint(), KeyScheme::kCairn, kBlockTokens});
    EXPECT_TRUE(chain.Enter(prompt.scope).ok());
    for (size_t i = 0; i < changed.keys.size(); ++i) {
      changed.keys[i] = *chain.Next(
          absl::MakeConstSpan(changed.tokens).subspan(i * kBlockTokens, kBlockTokens), "");
    }
    return changed;
  }

  Sha256BlockHasher hasher_;
  TestStore t_;
};

TEST_F(ExplainTest, WhatIsHeldNeedsNoReason) {
  const TestPrompt prompt = Put(t_.Prompt("t", 1, 3));
  const ExplainAnswer answer = Explain(prompt);
  EXPECT_TRUE(answer.namespace_known);
  EXPECT_EQ(answer.present, 3u);
  EXPECT_FALSE(answer.partial);
  EXPECT_EQ(answer.looked_at, 0u) << "nothing to look for";
}

TEST_F(ExplainTest, ATokenThatChangesIsFoundWithWhatIsHeldInItsPlace) {
  const TestPrompt held = Put(t_.Prompt("t", 1, 3));
  for (const size_t position : {0, 3, 4, 6, 11}) {
    const TestPrompt asked = Changed(held, position, 1);
    const ExplainAnswer answer = Explain(asked);
    EXPECT_EQ(answer.present, position / kBlockTokens);
    EXPECT_EQ(answer.state, BlockState::kNeverSeen);
    ASSERT_TRUE(answer.nearest.has_value()) << position;
    EXPECT_EQ(answer.nearest->common_tokens, position % kBlockTokens);
    EXPECT_EQ(answer.nearest->key, held.keys[position / kBlockTokens]);
    EXPECT_EQ(answer.nearest->tokens[position % kBlockTokens], held.tokens[position]);
    EXPECT_EQ(answer.candidates, 1u);
  }
}

TEST_F(ExplainTest, OfSeveralTheOneWithMostTokensInCommon) {
  const TestPrompt held = t_.Prompt("t", 1, 1);
  const TestPrompt asked = Changed(held, 3, 1);
  Put(Changed(held, 1, 1));
  Put(Changed(held, 2, 1));
  Put(Changed(held, 0, 4));
  const ExplainAnswer answer = Explain(asked);
  ASSERT_TRUE(answer.nearest.has_value());
  EXPECT_EQ(answer.nearest->common_tokens, 2u);
  EXPECT_EQ(answer.candidates, 3u);
}

TEST_F(ExplainTest, OfThoseThatDifferAtTheSameTokenTheOneThatIsEqualAgain) {
  const TestPrompt held = t_.Prompt("t", 1, 1);
  const TestPrompt asked = Changed(held, 1, 1);
  Put(Changed(Changed(held, 1, 3), 1, 1));
  const TestPrompt near = Put(held);
  const ExplainAnswer answer = Explain(asked);
  ASSERT_TRUE(answer.nearest.has_value());
  EXPECT_EQ(answer.nearest->common_tokens, 1u);
  EXPECT_EQ(answer.nearest->common_at_end, 2u);
  EXPECT_EQ(answer.nearest->key, near.keys[0]);
}

TEST_F(ExplainTest, AnotherScopeOfTheTenantWithTheSameTokensIsNamed) {
  const TestPrompt held = Put(t_.Prompt("t", 1, 2, "old salt"));
  const TestPrompt asked = t_.Prompt("t", 1, 2, "new salt");
  ASSERT_EQ(held.tokens, asked.tokens);
  const ExplainAnswer answer = Explain(asked);
  EXPECT_EQ(answer.present, 0u);
  ASSERT_TRUE(answer.other_scope.has_value());
  EXPECT_EQ(answer.other_scope->salt, "old salt");
  EXPECT_FALSE(answer.nearest.has_value()) << "that scope's blocks do not stand there";
}

TEST_F(ExplainTest, AnotherTenantsBlocksAreNoPartOfAnAnswer) {
  t_.Register(TestStore::Shape(kBlockBytes), "u");
  const TestPrompt theirs = Put(t_.Prompt("u", 1, 2));
  TestPrompt asked = t_.Prompt("t", 1, 2);
  ASSERT_EQ(theirs.tokens, asked.tokens);
  ExplainAnswer answer = Explain(asked);
  EXPECT_FALSE(answer.other_scope.has_value());
  EXPECT_FALSE(answer.nearest.has_value());
  // Nor where it asks with their keys and scope.
  asked.keys = theirs.keys;
  ExplainQuery query = QueryOf(asked);
  query.regions[0].scope_digest = ScopeDigest(theirs.scope);
  answer = t_.store->Explain("t", t_.fingerprint(), query);
  EXPECT_EQ(answer.present, 0u);
  EXPECT_EQ(answer.state, BlockState::kNeverSeen);
  EXPECT_FALSE(answer.nearest.has_value());
}

TEST_F(ExplainTest, ASecondRegionDivergesUnderThePublicBlocksBeforeIt) {
  const TestPrompt shared = Put(t_.Prompt("public", 1, 2));
  const TestPrompt own = Put(t_.After(shared, "t", 2, 2));
  const TestPrompt other = t_.After(shared, "t", 3, 2);
  ExplainQuery query;
  query.keys = shared.keys;
  query.keys.insert(query.keys.end(), other.keys.begin(), other.keys.end());
  query.tokens = shared.tokens;
  query.tokens.insert(query.tokens.end(), other.tokens.begin(), other.tokens.end());
  query.regions = {{0, ScopeDigest(shared.scope), true}, {2, ScopeDigest(other.scope), false}};
  const ExplainAnswer answer = t_.store->Explain("t", t_.fingerprint(), query);
  EXPECT_EQ(answer.present, 2u);
  ASSERT_TRUE(answer.nearest.has_value());
  EXPECT_EQ(answer.nearest->key, own.keys[0]);
}

TEST_F(ExplainTest, WhatWasEvictedSaysSoAndWhen) {
  const TestPrompt prompt = Put(t_.Prompt("t", 1, 1));
  t_.store->Tick();
  uint32_t seed = 100;
  while (t_.Present(prompt) > 0) Put(t_.Prompt("t", ++seed, 1));
  t_.Advance(absl::Seconds(90));
  t_.store->Tick();
  ExplainAnswer answer = Explain(prompt);
  EXPECT_EQ(answer.state, BlockState::kEvicted);
  EXPECT_EQ(answer.removed_ago, absl::Seconds(90));

  const TestPrompt deleted = Put(t_.Prompt("t", ++seed, 1));
  ASSERT_TRUE(t_.store->Delete("t", t_.fingerprint(), deleted.keys).ok());
  answer = Explain(deleted);
  EXPECT_EQ(answer.state, BlockState::kDeleted);
  EXPECT_EQ(answer.removed_ago, absl::ZeroDuration());
}

TEST_F(ExplainTest, WhatIsBeingWrittenIsPending) {
  const TestPrompt prompt = t_.Prompt("t", 1, 1);
  const auto reserved = t_.Reserve(prompt);
  ASSERT_TRUE(reserved.ok());
  EXPECT_EQ(Explain(prompt).state, BlockState::kPending);
  ASSERT_TRUE(t_.store->Abort("t", *reserved->token).ok());
}

TEST_F(ExplainTest, WithoutTokensNothingIsComparedAndItSaysSo) {
  const TestPrompt held = Put(t_.Prompt("t", 1, 2));
  ExplainQuery query = QueryOf(Changed(held, 5, 1));
  query.tokens.clear();
  const ExplainAnswer answer = t_.store->Explain("t", t_.fingerprint(), query);
  EXPECT_EQ(answer.present, 1u);
  EXPECT_TRUE(answer.partial);
  EXPECT_FALSE(answer.nearest.has_value());
}

TEST_F(ExplainTest, ARetiredNamespaceIsUnknownWhateverWasFound) {
  const TestPrompt held = Put(t_.Prompt("t", 1, 2));
  const TestPrompt asked = Changed(held, 5, 1);
  ASSERT_TRUE(t_.store->RetireNamespace(t_.fingerprint()).ok());
  const ExplainAnswer answer = Explain(asked);
  EXPECT_FALSE(answer.namespace_known);
  EXPECT_EQ(answer.state, BlockState::kNamespaceUnknown);
  EXPECT_FALSE(answer.nearest.has_value());
}

TEST_F(ExplainTest, TheNearestNamespacesComeFirstWithTheFieldThatDiffers) {
  Namespace fields = TestStore::Shape(kBlockBytes);
  t_.Register(TestStore::Shape(kBlockBytes, "another"), "t", "far");
  t_.Register(TestStore::Shape(kBlockBytes, "theirs"), "u", "not mine");
  fields.revision = "sha256:new";
  const auto near = t_.store->NamespacesNear("t", fields, 8);
  ASSERT_EQ(near.size(), 2u);
  EXPECT_THAT(near[0].second, HasSubstr("revision"));
  EXPECT_THAT(near[1], Pair("far", HasSubstr("model is \"another\" there and \"model\" here")));
  EXPECT_EQ(t_.store->NamespacesNear("t", fields, 1).size(), 1u);
}

}  // namespace
}  // namespace cairn::node
