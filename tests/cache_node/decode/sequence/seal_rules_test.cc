// Which blocks are published at all, and what a store that refuses does to that. Each test is a
// story on a small store with a fake clock.
#include <gmock/gmock.h>

#include "common/base/check.h"
#include "tests/cache_node/decode/sequence/seal_world.h"
#include "tests/cache_node/store/keeping_policy.h"

namespace cairn::node {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SealRulesTest : public SealTest {};

TEST_F(SealRulesTest, OnlyTheTenantsOwnRegionIsPublished) {
  const TestPrompt shared = w_.store.Prompt("public", 3, 2);
  ASSERT_EQ(w_.store.Put(shared), 2u);
  // A public prompt alone: what follows would be public as well.
  const SequenceId open = w_.Open(shared);
  ASSERT_TRUE(w_.Append(open, 8, {1, 2, 3, 4}).ok());
  EXPECT_THAT(w_.SealAll(), IsEmpty());
  // A region of the tenant's behind it, with a tail of its own prompt.
  const TestPrompt mine = w_.store.After(shared, "t", 4, 2);
  SequenceTable::Opening opening = w_.OpeningOf(shared, {});
  opening.prompt.regions.push_back({.scope = mine.scope, .first_block = 2});
  opening.prompt.keys.insert(opening.prompt.keys.end(), mine.keys.begin(), mine.keys.end());
  opening.prompt.tokens.insert(opening.prompt.tokens.end(), mine.tokens.begin(), mine.tokens.end());
  const auto opened = w_.table->Open(std::move(opening));
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened->covered_tokens, 8u);
  ASSERT_TRUE(w_.Append(opened->id, 8, mine.tokens).ok());
  EXPECT_THAT(w_.SealAll(), ElementsAre(SealOutcome::kSealed, SealOutcome::kSealed));
  EXPECT_EQ(w_.store.Present(mine), 2u);
}

TEST(SealPublicTest, PublicBlocksAreThoseOfATenantWhereNobodyIsToldApart) {
  for (const bool allowed : {false, true}) {
    SequenceTable::Options options = SequenceWorld::TableOptions();
    options.seal_public = allowed;
    SealWorld w(options);
    const TestPrompt shared = w.store.Prompt("public", 3, 2);
    ASSERT_EQ(w.store.Put(shared), 2u);
    const TestPrompt longer = w.store.Branch(shared, 2, 9, 1);
    // One who acts for it, and a tenant that goes on behind it.
    const SequenceId theirs = w.Open(shared, {.tenant = "t"});
    const SequenceId own = w.Open(shared, {.tenant = "public"});
    ASSERT_TRUE(w.Append(theirs, 8, SealWorld::Tail(longer, 1)).ok());
    EXPECT_THAT(w.SealAll(), IsEmpty());
    ASSERT_TRUE(w.Append(own, 8, SealWorld::Tail(longer, 1), "public").ok());
    EXPECT_THAT(w.SealAll(), SizeIs(allowed ? 1 : 0));
    EXPECT_EQ(w.store.Present(longer), allowed ? 3u : 2u);
    w.End();
  }
}

TEST_F(SealRulesTest, AFirstRegionOfOthersIsPassedOver) {
  const TestPrompt shared = w_.store.Prompt("public", 3, 2);
  ASSERT_EQ(w_.store.Put(shared), 2u);
  const TestPrompt mine = w_.store.After(shared, "t", 4, 1);
  SequenceTable::Opening opening = w_.OpeningOf(shared, {.blocks_max = 1});
  opening.prompt.regions.push_back({.scope = mine.scope, .first_block = 2});
  opening.prompt.keys.push_back(mine.keys[0]);
  opening.prompt.tokens.insert(opening.prompt.tokens.end(), mine.tokens.begin(), mine.tokens.end());
  const auto opened = w_.table->Open(std::move(opening));
  ASSERT_TRUE(opened.ok());
  ASSERT_TRUE(w_.Append(opened->id, 4, SealWorld::Tail(shared, 1)).ok());
  EXPECT_THAT(w_.SealAll(), IsEmpty());
  ASSERT_TRUE(w_.Append(opened->id, 8, mine.tokens).ok());
  EXPECT_THAT(w_.SealAll(), ElementsAre(SealOutcome::kSealed));
  EXPECT_EQ(w_.store.Present(mine), 1u);
}

TEST_F(SealRulesTest, APromptByKeysHasNoScopeToPublishUnder) {
  SequenceTable::Opening opening = w_.OpeningOf(prompt_, {});
  opening.prompt.regions.clear();
  opening.prompt.tokens.clear();
  const auto opened = w_.table->Open(std::move(opening));
  ASSERT_TRUE(opened.ok());
  ASSERT_TRUE(w_.Append(opened->id, 8, more_).ok());
  EXPECT_THAT(w_.SealAll(), IsEmpty());
}

TEST_F(SealRulesTest, ExtrasOfThePromptsBlocksAreInTheirKeys) {
  SequenceTable::Opening opening = w_.OpeningOf(prompt_, {});
  // An image in the block that the prompt begins and the sequence ends.
  ExtraItem image{.kind = ExtraKind::kMedia, .digest = {}, .start = 1};
  image.digest[5] = 9;
  opening.prompt.tokens.insert(opening.prompt.tokens.end(), more_.begin(), more_.begin() + 2);
  opening.prompt.extras[2] = {image};
  const auto opened = w_.table->Open(std::move(opening));
  ASSERT_TRUE(opened.ok());
  ASSERT_TRUE(w_.Append(opened->id, 8, more_).ok());
  EXPECT_THAT(w_.SealAll(), ElementsAre(SealOutcome::kSealed, SealOutcome::kSealed));
  EXPECT_EQ(w_.store.Present(longer_), 2u);  // Those without it are others.
  const Region region{.scope = longer_.scope, .tokens = longer_.tokens, .external_ids = {}};
  const auto keys = PromptKeys(w_.hasher, *KeyRulesOf(w_.fields), {&region, 1}, {{2, {image}}});
  ASSERT_TRUE(keys.ok());
  EXPECT_TRUE(w_.store.Pin("t", (*keys)[2]));
  EXPECT_TRUE(w_.store.Pin("t", (*keys)[3]));
}

TEST(SealRefusalsTest, ExternalKeysArePublishedAsFarAsThereAreIds) {
  Namespace fields = SequenceWorld::Shape();
  fields.key_scheme = KeyScheme::kExternal;
  SealWorld w(SequenceWorld::TableOptions(), fields);
  const Scope scope{.tenant = "t", .adapter = "", .salt = ""};
  const std::vector<std::string> ids = {"a", "b"};
  const Region region{.scope = scope, .tokens = {}, .external_ids = ids};
  const auto keys = PromptKeys(w.hasher, *KeyRulesOf(fields), {&region, 1}, {});
  ASSERT_TRUE(keys.ok()) << keys.status();
  SequenceTable::Opening opening;
  opening.tenant = "t";
  opening.fingerprint = w.fingerprint;
  opening.map = w.map;
  opening.prompt.rules = *KeyRulesOf(fields);
  opening.prompt.regions.push_back({.scope = scope, .first_block = 0});
  opening.prompt.keys = *keys;
  opening.prompt.external_ids = ids;
  opening.reserve_tokens = 16;
  const auto opened = w.table->Open(std::move(opening));
  ASSERT_TRUE(opened.ok());
  ASSERT_TRUE(w.Append(opened->id, 0, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}).ok());
  EXPECT_THAT(w.SealAll(), ElementsAre(SealOutcome::kSealed, SealOutcome::kSealed));
  EXPECT_TRUE(w.store.Pin("t", (*keys)[1]));
  w.End();
}

TEST(SealRefusalsTest, AFullStoreIsAskedAgainAndOneThatDeclinesIsNot) {
  KeepingLog log;
  TestStoreOptions keeping = SequenceWorld::StoreOptions();
  keeping.policies = std::make_unique<KeepingPolicyFactory>(&log);
  SealWorld w(SequenceWorld::TableOptions(), SequenceWorld::Shape(), std::move(keeping));
  const TestPrompt prompt = w.store.Prompt("t", 1, 2);
  ASSERT_EQ(w.store.Put(prompt), 2u);
  const SequenceId id = w.Open(prompt);
  ASSERT_TRUE(w.Append(id, 8, {1, 2, 3, 4}).ok());
  // Every slot is held: there is nobody to make room.
  std::vector<BlockPin> pins;
  for (uint32_t i = 0; i < 200; ++i) {
    const TestPrompt other = w.store.Prompt("t", 100 + i, 1);
    if (w.store.Put(other) == 0) break;
    pins.push_back(w.store.Pin("t", other.keys[0]));
  }
  ASSERT_LT(pins.size(), 200u);
  EXPECT_THAT(w.SealAll(), ElementsAre(SealOutcome::kNoSpace));
  pins.clear();  // Now they could leave, but the policy keeps them.
  w.store.Advance(absl::Seconds(1));
  EXPECT_THAT(w.SealAll(), ElementsAre(SealOutcome::kDeclined));
  w.store.Advance(absl::Seconds(5));
  EXPECT_THAT(w.SealAll(), IsEmpty());
  EXPECT_EQ(w.CountOf(SealOutcome::kNoSpace), 1u);
  EXPECT_EQ(w.CountOf(SealOutcome::kDeclined), 1u);
  EXPECT_TRUE(w.Append(id, 12, {5}).ok());
  w.End();
}

TEST(SealRefusalsTest, SealsUnderWayAreBounded) {
  SequenceTable::Options options = SequenceWorld::TableOptions();
  options.seals_max = 2;
  SealWorld w(options);
  const TestPrompt prompt = w.store.Prompt("t", 1, 1);
  ASSERT_EQ(w.store.Put(prompt), 1u);
  for (uint32_t i = 0; i < 4; ++i) {
    const SequenceId id = w.Open(prompt, {.reserve_tokens = 4});
    ASSERT_TRUE(w.Append(id, 4, {i, 2, 3, 4}).ok());
  }
  const std::vector<SealTask> tasks = w.table->TakeSeals(8);
  EXPECT_THAT(tasks, SizeIs(2));
  EXPECT_THAT(w.table->TakeSeals(8), IsEmpty());
  for (const SealTask& task : tasks) w.table->FinishSeal(task.serial, w.sealer.Seal(task));
  EXPECT_THAT(w.SealAll(), SizeIs(2));
  w.End();
}

}  // namespace
}  // namespace cairn::node
