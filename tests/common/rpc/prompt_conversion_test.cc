// Prompts through the message and back, and each part bent on its own.
#include "common/rpc/prompt_conversion.h"

#include <string>
#include <utility>

#include "common/rpc/piece_conversion.h"
#include "common/wire/limits.h"

namespace cairn::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::Prompt ByTokens() {
  v1::Prompt message;
  v1::Region* region = message.add_regions();
  region->mutable_scope()->set_tenant("public");
  for (uint32_t token = 0; token < 16; ++token) region->add_tokens(token);
  region = message.add_regions();
  region->mutable_scope()->set_tenant("acme");
  region->mutable_scope()->set_adapter("lora@1");
  region->mutable_scope()->set_salt(std::string("\0s", 2));
  region->add_tokens(7);
  v1::BlockExtra* extra = message.add_extras();
  extra->set_block(1);
  v1::ExtraItem* item = extra->add_items();
  item->set_kind(v1::ExtraItem::KIND_EMBEDDING);
  item->set_digest(std::string(32, 'd'));
  item->set_start(-3);
  return message;
}

void ExpectInvalid(const v1::Prompt& message, const std::string& words) {
  const absl::Status status = PromptFromProto(message).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(words));
}

TEST(PromptConversion, RegionsScopesAndExtrasComeBack) {
  const v1::Prompt message = ByTokens();
  absl::StatusOr<PromptFields> parsed = PromptFromProto(message);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const PromptFields prompt = *std::move(parsed);
  ASSERT_EQ(prompt.regions.size(), 2u);
  EXPECT_EQ(prompt.regions[0].tokens.size(), 16u);
  EXPECT_EQ(prompt.regions[1].scope, (Scope{"acme", "lora@1", std::string("\0s", 2)}));
  EXPECT_THAT(prompt.regions[1].tokens, ElementsAre(7));
  EXPECT_EQ(prompt.extras.at(1)[0].start, -3);
  EXPECT_EQ(PromptToProto(prompt.regions, prompt.extras).SerializeAsString(),
            message.SerializeAsString());
}

TEST(PromptConversion, ExternalIdsSurviveAMove) {
  v1::Prompt message;
  message.add_regions()->add_external_ids("short");
  message.mutable_regions(0)->add_external_ids(std::string(64, 'i'));
  absl::StatusOr<PromptFields> parsed = PromptFromProto(message);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const PromptFields prompt = *std::move(parsed);
  EXPECT_THAT(prompt.regions[0].external_ids, ElementsAre("short", std::string(64, 'i')));
}

TEST(PromptConversion, KeysComeBack) {
  v1::Prompt message;
  message.set_keys(std::string(32, 'k'));
  const absl::StatusOr<PromptFields> prompt = PromptFromProto(message);
  ASSERT_TRUE(prompt.ok()) << prompt.status();
  EXPECT_EQ(prompt->keys.size(), 2u);
  EXPECT_TRUE(prompt->regions.empty());
}

TEST(PromptConversion, RefusesNeitherAndBoth) {
  ExpectInvalid(v1::Prompt(), "is empty; give regions or keys");
  v1::Prompt both = ByTokens();
  both.set_keys(std::string(16, 'k'));
  ExpectInvalid(both, "has both regions and keys");
}

TEST(PromptConversion, RefusesExtrasBesideKeys) {
  v1::Prompt message;
  message.set_keys(std::string(16, 'k'));
  message.add_extras();
  ExpectInvalid(message, "extras: go with regions only");
}

TEST(PromptConversion, RefusesAThirdRegionAndAnEmptyOne) {
  v1::Prompt message = ByTokens();
  *message.add_regions() = message.regions(0);
  ExpectInvalid(message, "has 3 regions; at most 2");
  message = ByTokens();
  message.mutable_regions(1)->clear_tokens();
  ExpectInvalid(message, "regions[1]: has no tokens");
}

TEST(PromptConversion, RefusesKeysAndIdsOfWrongLength) {
  v1::Prompt message;
  message.set_keys(std::string(17, 'k'));
  ExpectInvalid(message, "keys has 17 bytes");
  message.clear_keys();
  message.add_regions()->add_external_ids("");
  ExpectInvalid(message, "external_ids[0] has 0 bytes; must be 1 to 64");
  message.mutable_regions(0)->set_external_ids(0, std::string(65, 'i'));
  ExpectInvalid(message, "external_ids[0] has 65 bytes");
}

TEST(PromptConversion, RefusesTooManyTokensAndKeys) {
  v1::Prompt message = ByTokens();
  message.mutable_regions(1)->mutable_tokens()->Resize(static_cast<int>(kTokensPerCallMax), 0);
  ExpectInvalid(message, "has 262160 tokens; at most 262144");
  message.Clear();
  message.set_keys(std::string(16 * (kKeysPerLookupMax + 1), 'k'));
  ExpectInvalid(message, "keys has 65537 keys");
}

TEST(PromptConversion, RefusesScopesOutOfBounds) {
  v1::Prompt message = ByTokens();
  message.mutable_regions(0)->mutable_scope()->set_salt(std::string(257, 's'));
  ExpectInvalid(message, "regions[0]: scope.salt has 257 bytes");
}

TEST(PromptConversion, RefusesBadExtras) {
  v1::Prompt message = ByTokens();
  *message.add_extras() = message.extras(0);
  ExpectInvalid(message, "extras: block 1 comes twice");

  message = ByTokens();
  message.mutable_extras(0)->mutable_items(0)->set_digest("short");
  ExpectInvalid(message, "extras of block 1: items[0]: digest has 5 bytes; must be 32");

  // 257 is 1 in the eight bits that the key has for a kind.
  for (const int kind : {0, 3, 257, -1}) {
    message = ByTokens();
    message.mutable_extras(0)->mutable_items(0)->set_kind(static_cast<v1::ExtraItem::Kind>(kind));
    ExpectInvalid(message, "kind is " + std::to_string(kind));
  }

  message = ByTokens();
  for (size_t i = 0; i < kExtraItemsPerBlockMax; ++i) {
    *message.mutable_extras(0)->add_items() = message.extras(0).items(0);
  }
  ExpectInvalid(message, "extras of block 1: has 65 items; at most 64");

  EXPECT_FALSE(ExtrasFromProto(ByTokens().extras(), 1).ok());
  EXPECT_TRUE(ExtrasFromProto(ByTokens().extras(), 2).ok());
}

TEST(PieceConversion, EveryFieldComesBack) {
  v1::Piece message;
  message.set_block(1);
  message.set_group(2);
  message.set_slice(3);
  message.set_layer(4);
  message.set_offset(5);
  message.set_length(6);
  message.add_digests(7);
  message.add_digests(8);
  message.set_state(v1::BLOCK_STATE_EVICTED);
  EXPECT_EQ(PieceToProto(PieceFromProto(message)).SerializeAsString(), message.SerializeAsString());
}

}  // namespace
}  // namespace cairn::testing
