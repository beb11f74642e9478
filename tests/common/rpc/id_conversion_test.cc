// Ids of right and wrong lengths, and lists of keys.
#include "common/rpc/id_conversion.h"

#include <string>

namespace cairn::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

void ExpectInvalid(const absl::Status& status, const std::string& words) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(words));
}

TEST(IdConversion, FingerprintIs32Bytes) {
  const std::string bytes(32, 'f');
  ASSERT_TRUE(FingerprintFromProto(bytes).ok());
  EXPECT_EQ(FingerprintFromProto(bytes)->view(), bytes);
  ExpectInvalid(FingerprintFromProto("").status(), "fingerprint has 0 bytes; must be 32");
  ExpectInvalid(FingerprintFromProto(std::string(33, 'f')).status(), "33 bytes");
}

TEST(IdConversion, IdIs16Bytes) {
  EXPECT_TRUE(IdFromProto<LeaseId>(std::string(16, 'l'), "lease").ok());
  ExpectInvalid(IdFromProto<LeaseId>(std::string(15, 'l'), "lease").status(),
                "lease has 15 bytes; must be 16");
  ExpectInvalid(IdFromProto<TokenId>("", "token").status(), "token has 0 bytes; must be 16");
}

TEST(IdConversion, OptionalIdMayBeEmpty) {
  const auto none = OptionalIdFromProto<BlockKey>("", "parent_key");
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->has_value());
  const auto some = OptionalIdFromProto<BlockKey>(std::string(16, 'k'), "parent_key");
  ASSERT_TRUE(some.ok());
  EXPECT_TRUE(some->has_value());
  ExpectInvalid(OptionalIdFromProto<BlockKey>("x", "parent_key").status(),
                "parent_key has 1 bytes; must be 16, or none");
}

TEST(IdConversion, KeysComeBackInOrder) {
  const std::string bytes = std::string(16, 'a') + std::string(16, 'b');
  const auto keys = KeysFromProto(bytes, "keys", 2);
  ASSERT_TRUE(keys.ok());
  ASSERT_THAT(*keys, SizeIs(2));
  EXPECT_EQ(KeysToProto(*keys), bytes);
  EXPECT_THAT(*KeysFromProto("", "keys", 0), SizeIs(0));
}

TEST(IdConversion, RefusesAPartOfAKeyAndTooMany) {
  ExpectInvalid(KeysFromProto(std::string(31, 'k'), "keys", 9).status(), "keys has 31 bytes");
  ExpectInvalid(KeysFromProto(std::string(48, 'k'), "keys", 2).status(),
                "keys has 3 keys; at most 2");
}

TEST(IdConversion, NamesTheKeyThatComesTwice) {
  const auto keys =
      KeysFromProto(std::string(16, 'a') + std::string(16, 'b') + std::string(16, 'a'), "keys", 3);
  ASSERT_TRUE(keys.ok());
  ExpectInvalid(CheckNoDuplicates(*keys, "keys"),
                "keys: key 61616161616161616161616161616161 is at 0 and again at 2");
  EXPECT_TRUE(CheckNoDuplicates(absl::MakeConstSpan(*keys).subspan(0, 2), "keys").ok());
}

}  // namespace
}  // namespace cairn::testing
