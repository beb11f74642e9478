// Files of public prefixes, good and bad, parsed.
#include "common/security/public_prefixes.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "common/base/hex.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kOne[] = "000102030405060708090a0b0c0d0e0f";
constexpr char kOther[] = "f00102030405060708090a0b0c0d0e0f";

BlockKey KeyOf(absl::string_view hex) { return *BlockKey::FromBytes(*FromHex(hex)); }

TEST(PublicPrefixesTest, ListsKeysWithCommentsAndInEitherCase) {
  const auto prefixes =
      PublicPrefixes::Parse(absl::StrCat("# prompts\n\n  ", kOne,
                                         "  # the assistant's\nF00102030405060708090A0B0C0D0E0F"),
                            "prefixes");
  ASSERT_TRUE(prefixes.ok()) << prefixes.status();
  EXPECT_EQ(prefixes->last_keys().size(), 2u);
  EXPECT_TRUE(prefixes->EndsWith(KeyOf(kOne)));
  EXPECT_TRUE(prefixes->EndsWith(KeyOf(kOther)));
  EXPECT_FALSE(prefixes->EndsWith(BlockKey()));
  EXPECT_EQ(PublicPrefixes::Parse("", "prefixes")->last_keys().size(), 0u);
}

TEST(PublicPrefixesTest, SaysWhichLineIsWrongAndWhatToWrite) {
  for (const std::string bad : {"0001", "zz0102030405060708090a0b0c0d0e0f",
                                "000102030405060708090a0b0c0d0e0f00", "the assistant's prompt"}) {
    const absl::Status status =
        PublicPrefixes::Parse(absl::StrCat(kOther, "\n", bad, "\n"), "prefixes").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("prefixes:2"), HasSubstr(bad.substr(0, 20)),
                      HasSubstr("32 hexadecimal digits")));
  }
  EXPECT_FALSE(PublicPrefixes::Parse(absl::StrCat(kOne, " ", kOther), "prefixes").ok())
      << "one a line";
  EXPECT_THAT(
      std::string(
          PublicPrefixes::Parse(absl::StrCat(kOne, "\n", kOne), "prefixes").status().message()),
      HasSubstr("has a line already"));
}

TEST(PublicPrefixesTest, AreBounded) {
  std::string text;
  for (size_t i = 0; i <= kPublicPrefixesMax; ++i) {
    BlockKey key;
    key.bytes[0] = static_cast<uint8_t>(i);
    key.bytes[1] = static_cast<uint8_t>(i >> 8);
    absl::StrAppend(&text, ToHex(key.view()), "\n");
  }
  EXPECT_THAT(std::string(PublicPrefixes::Parse(text, "prefixes").status().message()),
              HasSubstr("more than 16384"));
  text.resize(text.size() - 33);
  EXPECT_TRUE(PublicPrefixes::Parse(text, "prefixes").ok());
}

TEST(PublicPrefixesTest, KnowWhetherTheyLoseOne) {
  const PublicPrefixes both = *PublicPrefixes::Parse(absl::StrCat(kOne, "\n", kOther), "prefixes");
  const PublicPrefixes one = *PublicPrefixes::Parse(kOne, "prefixes");
  EXPECT_TRUE(one.IsWithin(both));
  EXPECT_TRUE(both.IsWithin(both));
  EXPECT_FALSE(both.IsWithin(one));
  EXPECT_TRUE(PublicPrefixes().IsWithin(one));
}

}  // namespace
}  // namespace cairn
