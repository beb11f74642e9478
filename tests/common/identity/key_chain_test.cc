// Scopes, extra and chains of keys: the rules about regions one at a time, and properties (a shared
// prefix shares its keys, any difference shares none from there on).
#include "common/identity/key_chain.h"

#include <gmock/gmock.h>

#include <numeric>
#include <set>

#include "tests/testing/identity_samples.h"
#include "tests/testing/identity_vectors.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;
using testing::PublicScope;
using testing::SampleNamespace;

constexpr uint32_t kBlockTokens = 16;

KeyRules Rules(KeyScheme scheme = KeyScheme::kCairn) {
  Namespace name_space = SampleNamespace();
  name_space.key_scheme = scheme;
  return *KeyRulesOf(name_space);
}

std::vector<uint32_t> Tokens(size_t count, uint32_t first = 0) {
  std::vector<uint32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

ExtraItem Item(ExtraKind kind, uint8_t digest, int32_t start) {
  ExtraItem item{.kind = kind, .digest = {}, .start = start};
  item.digest.fill(digest);
  return item;
}

absl::StatusOr<std::vector<BlockKey>> Keys(const std::vector<Region>& regions,
                                           const ExtrasByBlock& extras = {},
                                           KeyScheme scheme = KeyScheme::kCairn) {
  return PromptKeys(Sha256BlockHasher(), Rules(scheme), regions, extras);
}

std::vector<BlockKey> KeysOf(const std::vector<uint32_t>& tokens,
                             const Scope& scope = PublicScope(), const ExtrasByBlock& extras = {}) {
  return *Keys({{.scope = scope, .tokens = tokens, .external_ids = {}}}, extras);
}

void ExpectInvalid(const absl::Status& status, const std::string& words) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(words));
}

TEST(ScopeTest, FieldsThatJoinToTheSameBytesAreDifferentScopes) {
  const BlockKey parent = Rules().fingerprint.root();
  EXPECT_NE(EnterScope(parent, {"a", "bc", ""}), EnterScope(parent, {"ab", "c", ""}));
  EXPECT_NE(EnterScope(parent, {"t", "x", ""}), EnterScope(parent, {"t", "", "x"}));
  EXPECT_NE(EnterScope(parent, {"t", "", ""}), EnterScope(parent, {"", "t", ""}));
}

TEST(ScopeTest, DependsOnWhatItIsEnteredAfter) {
  EXPECT_NE(EnterScope(BlockKey{}, PublicScope()),
            EnterScope(Rules().fingerprint.root(), PublicScope()));
}

TEST(ScopeTest, RefusesLongFieldsAndBadUtf8ButNotRawSalt) {
  EXPECT_TRUE(ValidateScope({std::string(256, 't'), "", std::string(256, '\xff')}).ok());
  ExpectInvalid(ValidateScope({std::string(257, 't'), "", ""}), "scope.tenant has 257 bytes");
  ExpectInvalid(ValidateScope({"t", std::string(257, 'a'), ""}), "scope.adapter has 257 bytes");
  ExpectInvalid(ValidateScope({"t", "", std::string(257, 's')}), "scope.salt has 257 bytes");
  ExpectInvalid(ValidateScope({"\x80", "", ""}), "scope.tenant is not well-formed UTF-8");
  ExpectInvalid(ValidateScope({"t", "\x80", ""}), "scope.adapter is not well-formed UTF-8");
}

TEST(ExtraTest, EncodingDoesNotDependOnTheOrderGiven) {
  std::vector<ExtraItem> items = {Item(ExtraKind::kMedia, 9, 0), Item(ExtraKind::kEmbedding, 1, 0),
                                  Item(ExtraKind::kMedia, 1, 0), Item(ExtraKind::kMedia, 200, -5)};
  const std::string encoded = EncodeExtra(items);
  EXPECT_EQ(encoded.size(), items.size() * kExtraItemBytes);
  EXPECT_TRUE(ValidateEncodedExtra(encoded).ok()) << ValidateEncodedExtra(encoded);
  std::reverse(items.begin(), items.end());
  EXPECT_EQ(EncodeExtra(items), encoded);
}

TEST(ExtraTest, OrdersByStartThenKindThenDigestBytesUnsigned) {
  const std::string encoded =
      EncodeExtra({Item(ExtraKind::kMedia, 0x80, 1), Item(ExtraKind::kMedia, 0x7f, 1),
                   Item(ExtraKind::kEmbedding, 0, 1), Item(ExtraKind::kEmbedding, 0xff, -1)});
  std::string order;
  for (size_t at = 0; at < encoded.size(); at += kExtraItemBytes) order += encoded[at + 1];
  EXPECT_EQ(order, std::string("\xff\x7f\x80\x00", 4));
}

TEST(ExtraTest, RefusesUnknownKindsAndTooManyItems) {
  ExpectInvalid(ValidateExtra({Item(ExtraKind{0}, 1, 0)}), "kind is 0");
  ExpectInvalid(ValidateExtra({Item(ExtraKind{3}, 1, 0)}), "kind is 3");
  std::vector<ExtraItem> items(kExtraItemsMax, Item(ExtraKind::kMedia, 1, 0));
  EXPECT_TRUE(ValidateExtra(items).ok());
  items.push_back(items[0]);
  ExpectInvalid(ValidateExtra(items), "1025 items");
}

TEST(ExtraTest, RefusesEncodedBytesThatAreNotCanonical) {
  const std::string a = EncodeExtra({Item(ExtraKind::kMedia, 1, 0)});
  const std::string b = EncodeExtra({Item(ExtraKind::kMedia, 1, -1)});
  EXPECT_TRUE(ValidateEncodedExtra("").ok());
  EXPECT_TRUE(ValidateEncodedExtra(b + a).ok());
  ExpectInvalid(ValidateEncodedExtra(a + b), "not ordered");
  ExpectInvalid(ValidateEncodedExtra(a.substr(1)), "36 bytes");
  ExpectInvalid(ValidateEncodedExtra(std::string(kExtraItemBytes, '\3')), "kind is 3");
}

TEST(PromptKeysTest, PromptsShareExactlyTheKeysOfTheirCommonBlocks) {
  const std::vector<uint32_t> tokens = Tokens(10 * kBlockTokens);
  const std::vector<BlockKey> keys = KeysOf(tokens);
  for (size_t changed = 0; changed < tokens.size(); changed += 7) {
    std::vector<uint32_t> other = tokens;
    other[changed] ^= 0x80000000;
    const std::vector<BlockKey> other_keys = KeysOf(other);
    for (size_t block = 0; block < keys.size(); ++block) {
      EXPECT_EQ(keys[block] == other_keys[block], block < changed / kBlockTokens);
    }
  }
}

TEST(PromptKeysTest, ALongerPromptBeginsWithTheShorterOnesKeys) {
  const std::vector<BlockKey> keys = KeysOf(Tokens(6 * kBlockTokens));
  for (size_t count = 0; count < 6 * kBlockTokens; ++count) {
    const std::vector<BlockKey> fewer = KeysOf(Tokens(count));
    ASSERT_EQ(fewer.size(), count / kBlockTokens);
    EXPECT_TRUE(std::equal(fewer.begin(), fewer.end(), keys.begin()));
  }
}

TEST(PromptKeysTest, EqualTokensInDifferentScopesShareNoKey) {
  std::set<BlockKey> seen;
  const Scope scopes[] = {PublicScope(),       {"acme", "", ""}, {"public", "x", ""},
                          {"public", "", "x"}, {"a", "bc", ""},  {"ab", "c", ""}};
  for (const Scope& scope : scopes) {
    for (const BlockKey& key : KeysOf(Tokens(64), scope)) EXPECT_TRUE(seen.insert(key).second);
  }
}

TEST(PromptKeysTest, ExtraChangesItsBlockAndAllAfter) {
  const std::vector<uint32_t> tokens = Tokens(64);
  const auto plain = KeysOf(tokens);
  const auto media = KeysOf(tokens, PublicScope(), {{1, {Item(ExtraKind::kMedia, 1, 0)}}});
  EXPECT_EQ(media[0], plain[0]);
  for (size_t block = 1; block < 4; ++block) EXPECT_NE(media[block], plain[block]);
}

TEST(PromptKeysTest, ExtrasOfTheSecondRegionCountFromThePromptsStart) {
  const std::vector<uint32_t> first = Tokens(32), second = Tokens(32, 100);
  const std::vector<Region> regions = {
      {.scope = PublicScope(), .tokens = first, .external_ids = {}},
      {.scope = {"acme", "", ""}, .tokens = second, .external_ids = {}}};
  const auto plain = *Keys(regions);
  const auto media = *Keys(regions, {{2, {Item(ExtraKind::kMedia, 1, 0)}}});
  EXPECT_EQ(media[1], plain[1]);
  EXPECT_NE(media[2], plain[2]);
}

TEST(PromptKeysTest, AnExtraMayNameThePartialLastBlockButNothingBeyond) {
  const std::vector<uint32_t> tokens = Tokens(20), whole = Tokens(32);
  const ExtrasByBlock at_1 = {{1, {Item(ExtraKind::kMedia, 1, 0)}}};
  const ExtrasByBlock at_2 = {{2, {Item(ExtraKind::kMedia, 1, 0)}}};
  EXPECT_EQ(KeysOf(tokens, PublicScope(), at_1), KeysOf(tokens));
  for (const auto& prompt : {tokens, whole}) {
    ExpectInvalid(
        Keys({{.scope = PublicScope(), .tokens = prompt, .external_ids = {}}}, at_2).status(),
        "block of an extra is 2");
  }
}

TEST(PromptKeysTest, AWrongExtraIsRefusedEvenForTheTail) {
  const std::vector<uint32_t> tokens = Tokens(20);
  ExpectInvalid(Keys({{.scope = PublicScope(), .tokens = tokens, .external_ids = {}}},
                     {{1, {Item(ExtraKind{7}, 1, 0)}}})
                    .status(),
                "kind is 7");
}

TEST(PromptKeysTest, HasOneOrTwoRegions) {
  const std::vector<uint32_t> tokens = Tokens(16);
  const Region region{.scope = PublicScope(), .tokens = tokens, .external_ids = {}};
  ExpectInvalid(Keys({}).status(), "number of regions is 0");
  EXPECT_TRUE(Keys({region, region}).ok());
  ExpectInvalid(Keys({region, region, region}).status(), "number of regions is 3");
}

TEST(PromptKeysTest, TheFirstOfTwoRegionsIsWholeBlocksAtLeastOne) {
  const std::vector<uint32_t> none, part = Tokens(15), more = Tokens(17), whole = Tokens(16);
  const auto keys_after = [&](const std::vector<uint32_t>& first) {
    return Keys({{.scope = PublicScope(), .tokens = first, .external_ids = {}},
                 {.scope = {"acme", "", ""}, .tokens = whole, .external_ids = {}}});
  };
  ExpectInvalid(keys_after(none).status(), "first of two regions is 0");
  ExpectInvalid(keys_after(part).status(), "first of two regions is 15");
  ExpectInvalid(keys_after(more).status(), "first of two regions is 17");
  EXPECT_EQ(keys_after(whole)->size(), 2u);
}

TEST(PromptKeysTest, TheSecondRegionMayBeShorterThanABlock) {
  const std::vector<uint32_t> whole = Tokens(16), part = Tokens(3);
  const auto keys = Keys({{.scope = PublicScope(), .tokens = whole, .external_ids = {}},
                          {.scope = {"acme", "", ""}, .tokens = part, .external_ids = {}}});
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_EQ(*keys, KeysOf(whole));
}

TEST(PromptKeysTest, TheFirstRegionsKeysDoNotDependOnWhetherASecondFollows) {
  const std::vector<uint32_t> first = Tokens(32), second = Tokens(32, 32);
  const auto keys = *Keys({{.scope = PublicScope(), .tokens = first, .external_ids = {}},
                           {.scope = {"acme", "", ""}, .tokens = second, .external_ids = {}}});
  const auto alone = KeysOf(Tokens(64));
  EXPECT_EQ(keys[1], alone[1]);
  EXPECT_NE(keys[2], alone[2]);
}

TEST(PromptKeysTest, RefusesABadScopeInEitherRegion) {
  const std::vector<uint32_t> tokens = Tokens(16);
  const Region good{.scope = PublicScope(), .tokens = tokens, .external_ids = {}};
  const Region bad{.scope = {"\xff", "", ""}, .tokens = tokens, .external_ids = {}};
  ExpectInvalid(Keys({bad}).status(), "scope.tenant");
  ExpectInvalid(Keys({good, bad}).status(), "scope.tenant");
}

TEST(PromptKeysTest, HasABoundOnTokens) {
  const std::vector<uint32_t> tokens(kPromptTokensMax + 1);
  const Region most{
      .scope = PublicScope(), .tokens = absl::MakeSpan(tokens).subspan(1), .external_ids = {}};
  const Region over{.scope = PublicScope(), .tokens = tokens, .external_ids = {}};
  EXPECT_EQ(Keys({most})->size(), kPromptTokensMax / kBlockTokens);
  ExpectInvalid(Keys({over}).status(), "number of tokens is 4194305");
}

TEST(ExternalKeysTest, AKeyDependsOnItsScopeAndIdAlone) {
  const std::vector<std::string> ids = {"a", "b", "a"};
  const auto keys = *Keys({{.scope = PublicScope(), .tokens = {}, .external_ids = ids}}, {},
                          KeyScheme::kExternal);
  EXPECT_EQ(keys[0], keys[2]);
  EXPECT_NE(keys[0], keys[1]);
}

TEST(ExternalKeysTest, AnIdHas1To64Bytes) {
  for (const auto& [id, words] : {std::pair<std::string, std::string>("", "external id is 0"),
                                  {std::string(65, 'x'), "external id is 65"}}) {
    const std::vector<std::string> ids = {id};
    ExpectInvalid(Keys({{.scope = PublicScope(), .tokens = {}, .external_ids = ids}}, {},
                       KeyScheme::kExternal)
                      .status(),
                  words);
  }
}

TEST(ExternalKeysTest, TheFirstOfTwoRegionsHasAtLeastOneBlock) {
  const std::vector<std::string> ids = {"a"};
  ExpectInvalid(Keys({{.scope = PublicScope(), .tokens = {}, .external_ids = {}},
                      {.scope = PublicScope(), .tokens = {}, .external_ids = ids}},
                     {}, KeyScheme::kExternal)
                    .status(),
                "first of two regions is 0");
}

TEST(ExternalKeysTest, TokensBesideIdsMustFillAsManyBlocks) {
  const std::vector<std::string> ids = {"a", "b"};
  const std::vector<uint32_t> fit = Tokens(40), few = Tokens(31);
  const auto with = [&](const std::vector<uint32_t>& tokens) {
    return Keys({{.scope = PublicScope(), .tokens = tokens, .external_ids = ids}}, {},
                KeyScheme::kExternal);
  };
  EXPECT_EQ(*with(fit), *with({}));
  ExpectInvalid(with(few).status(), "number of external ids is 2");
}

TEST(ExternalKeysTest, SchemesDoNotMix) {
  const std::vector<std::string> ids = {"a"};
  const std::vector<uint32_t> tokens = Tokens(16);
  ExpectInvalid(Keys({{.scope = PublicScope(), .tokens = tokens, .external_ids = ids}}).status(),
                "number of external ids is 1");
  ExpectInvalid(Keys({{.scope = PublicScope(), .tokens = {}, .external_ids = ids}},
                     {{0, {Item(ExtraKind::kMedia, 1, 0)}}}, KeyScheme::kExternal)
                    .status(),
                "blocks with extra is 1");
}

TEST(KeyChainTest, OneBlockAtATimeGivesThePromptsKeys) {
  const std::vector<uint32_t> tokens = Tokens(48);
  const Sha256BlockHasher hasher;
  KeyChain chain(&hasher, Rules());
  ASSERT_TRUE(chain.Enter(PublicScope()).ok());
  EXPECT_EQ(chain.parent(), chain.root());
  for (const BlockKey& expected : KeysOf(tokens)) {
    const auto block =
        absl::MakeConstSpan(tokens).subspan(chain.block_count() * kBlockTokens, kBlockTokens);
    EXPECT_EQ(*chain.Next(block, {}), expected);
    EXPECT_EQ(chain.parent(), expected);
  }
}

TEST(KeyChainTest, ARefusedCallLeavesTheChainWhereItWas) {
  const std::vector<uint32_t> tokens = Tokens(17);
  const Sha256BlockHasher hasher;
  KeyChain chain(&hasher, Rules());
  ExpectInvalid(chain.Next(absl::MakeConstSpan(tokens).subspan(1), {}).status(),
                "number of regions is 0");
  ASSERT_TRUE(chain.Enter(PublicScope()).ok());
  const BlockKey before = chain.parent();
  ExpectInvalid(chain.Next(tokens, {}).status(), "tokens of a block is 17");
  ExpectInvalid(chain.Next(absl::MakeConstSpan(tokens).subspan(1), "x").status(), "extra has 1");
  ExpectInvalid(chain.NextExternal("id").status(), "key scheme of the block is 2");
  ExpectInvalid(chain.Enter({"acme", "", ""}), "first of two regions is 0");
  EXPECT_EQ(chain.parent(), before);
  EXPECT_EQ(chain.block_count(), 0u);
}

}  // namespace
}  // namespace cairn
