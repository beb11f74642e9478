// PlanReserve: keys recomputed from what a writer says, against the chain of common/identity.
#include "cache_node/store/reserve_plan.h"

#include <gmock/gmock.h>

#include "cache_node/store/scope_digest.h"
#include "common/base/check.h"
#include "tests/testing/identity_samples.h"

namespace cairn::node {
namespace {

using ::testing::HasSubstr;

class PlanTest : public ::testing::Test {
 protected:
  PlanTest() {
    name_space_ = testing::SampleNamespace();
    Rebuild();
  }

  void Rebuild() {
    const auto rules = KeyRulesOf(name_space_);
    CAIRN_CHECK_OK(rules.status());
    rules_ = *rules;
    tokens_.resize(4 * rules_.block_tokens);
    for (size_t i = 0; i < tokens_.size(); ++i) tokens_[i] = static_cast<uint32_t>(i * 7);
  }
  // Keys of a prompt of `regions` of tokens_ each.
  std::vector<BlockKey> Keys(const std::vector<Region>& regions, const ExtrasByBlock& extras = {}) {
    const auto keys = PromptKeys(hasher_, rules_, regions, extras);
    CAIRN_CHECK_OK(keys.status());
    return *keys;
  }
  absl::StatusOr<ReserveQuery> Plan() { return PlanReserve(hasher_, rules_, fields_); }

  const Scope scope_{.tenant = "t", .adapter = "a", .salt = "s"};
  const Scope public_{.tenant = "public", .adapter = "", .salt = ""};
  Sha256BlockHasher hasher_;
  Namespace name_space_;
  KeyRules rules_;
  std::vector<uint32_t> tokens_;
  std::vector<std::string> ids_;
  ReserveFields fields_;
};

TEST_F(PlanTest, ARegionFromItsStart) {
  const ExtrasByBlock extras = {{2, {{.kind = ExtraKind::kMedia, .digest = {1}, .start = 3}}}};
  const std::vector<BlockKey> keys =
      Keys({{.scope = scope_, .tokens = tokens_, .external_ids = {}}}, extras);
  fields_ = {.scope = scope_, .keys = keys, .tokens = tokens_, .extras = extras};
  const auto plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_FALSE(plan->mismatch_at.has_value());
  EXPECT_FALSE(plan->parent.has_value());
  EXPECT_TRUE(plan->enters_scope);
  EXPECT_EQ(plan->scope_digest, ScopeDigest(scope_));
  fields_.extras.clear();
  EXPECT_EQ(Plan()->mismatch_at, 2u);
}

TEST_F(PlanTest, TheSecondRegionFollowsTheFirstsLastBlock) {
  const std::vector<BlockKey> keys =
      Keys({{.scope = public_, .tokens = tokens_, .external_ids = {}},
            {.scope = scope_, .tokens = tokens_, .external_ids = {}}});
  fields_ = {.scope = scope_,
             .region_parent = keys[3],
             .keys = absl::MakeConstSpan(keys).subspan(4),
             .tokens = tokens_};
  auto plan = Plan();
  ASSERT_TRUE(plan.ok());
  EXPECT_FALSE(plan->mismatch_at.has_value());
  EXPECT_EQ(plan->parent, keys[3]);
  EXPECT_TRUE(plan->enters_scope);
  // From its second block on.
  fields_.parent = keys[4];
  fields_.keys = absl::MakeConstSpan(keys).subspan(5);
  fields_.tokens = absl::MakeConstSpan(tokens_).subspan(rules_.block_tokens);
  plan = Plan();
  ASSERT_TRUE(plan.ok());
  EXPECT_FALSE(plan->mismatch_at.has_value());
  EXPECT_EQ(plan->parent, keys[4]);
  EXPECT_FALSE(plan->enters_scope);
}

TEST_F(PlanTest, AnotherScopeParentOrTokenIsAMismatchAtTheFirstKeyThatItChanges) {
  const std::vector<BlockKey> keys =
      Keys({{.scope = scope_, .tokens = tokens_, .external_ids = {}}});
  fields_ = {.scope = public_, .keys = keys, .tokens = tokens_};
  EXPECT_EQ(Plan()->mismatch_at, 0u);
  fields_.scope = scope_;
  fields_.region_parent = keys[0];
  EXPECT_EQ(Plan()->mismatch_at, 0u);
  fields_.region_parent.reset();
  tokens_.back() ^= 1;
  EXPECT_EQ(Plan()->mismatch_at, 3u);
}

TEST_F(PlanTest, ExternalIdsHangOnTheScopeOnlyAndTokensAreOptional) {
  name_space_.key_scheme = KeyScheme::kExternal;
  Rebuild();
  ids_ = {"one", "two", "three"};
  const std::vector<BlockKey> keys = Keys({{.scope = scope_, .tokens = {}, .external_ids = ids_}});
  fields_ = {.scope = scope_, .keys = keys, .external_ids = ids_};
  auto plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_FALSE(plan->mismatch_at.has_value());
  fields_.parent = *BlockKey::FromBytes("0123456789abcdef");
  EXPECT_FALSE(Plan()->mismatch_at.has_value());
  ids_[1] = "TWO";
  EXPECT_EQ(Plan()->mismatch_at, 1u);
  ids_[1] = "";
  EXPECT_THAT(Plan().status().message(), HasSubstr("external_ids[1] has 0 bytes"));
  fields_.external_ids = absl::MakeConstSpan(ids_).subspan(1);
  EXPECT_EQ(Plan().status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(PlanTest, FieldsThatTheSchemeDoesNotAskForAreRefusedByName) {
  const std::vector<BlockKey> keys =
      Keys({{.scope = scope_, .tokens = tokens_, .external_ids = {}}});
  const ReserveFields good = {.scope = scope_, .keys = keys, .tokens = tokens_};
  const auto refused = [&](absl::string_view field, auto change) {
    fields_ = good;
    change(&fields_);
    const absl::Status status = Plan().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << field;
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(field)));
  };
  ids_ = {"x"};
  refused("tokens", [](ReserveFields* f) { f->tokens.remove_suffix(1); });
  refused("keys", [](ReserveFields* f) { f->keys = {}; });
  refused("external_ids", [this](ReserveFields* f) { f->external_ids = ids_; });
  refused("extras", [](ReserveFields* f) { f->extras[4] = {}; });
  refused("tenant", [](ReserveFields* f) { f->scope.tenant = std::string(300, 'x'); });
}

}  // namespace
}  // namespace cairn::node
