// Tokens are found by their digests alone; files are refused as in access_table_test.cc, and never
// repeated in a message: a token may stand there by mistake.
#include "common/security/token_table.h"

#include "common/base/hex.h"

namespace cairn::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kToken[] = "a token of enough bytes";
constexpr char kOther[] = "another token of enough";

std::string DigestOf(absl::string_view token) {
  const Sha256Digest digest = Sha256(token);
  return ToHex({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

TEST(TokenTable, FindsByTheTokenOnly) {
  const absl::StatusOr<TokenTable> table =
      TokenTable::Parse(absl::StrCat("# tokens\nacme-worker ", DigestOf(kToken), "\n"), "tokens");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->Find(kToken), "acme-worker");
  EXPECT_EQ(table->Find(kOther), std::nullopt);
  EXPECT_EQ(table->Find(DigestOf(kToken)), std::nullopt);
  EXPECT_EQ(table->Find(""), std::nullopt);
  EXPECT_EQ(table->Find(absl::StrCat(kToken, " ")), std::nullopt);
}

TEST(TokenTable, OneNameMayHaveTwoWhileTheyAreExchanged) {
  const absl::StatusOr<TokenTable> table =
      TokenTable::Parse(absl::StrCat("w ", DigestOf(kToken), "\nw ", DigestOf(kOther)), "tokens");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->Find(kToken), "w");
  EXPECT_EQ(table->Find(kOther), "w");
}

TEST(TokenTable, RefusesWhatMeansNothingAndRepeatsNoSecret) {
  const auto why = [](const std::string& line) {
    const absl::Status status = TokenTable::Parse(absl::StrCat("\n", line), "tokens").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << line;
    EXPECT_THAT(std::string(status.message()), HasSubstr("tokens:2: ")) << line;
    return std::string(status.message());
  };
  EXPECT_THAT(why("w hunter2hunter2hunter2"), Not(HasSubstr("hunter2")));
  EXPECT_THAT(why("w hunter2hunter2hunter2"), HasSubstr("sha256sum"));
  EXPECT_THAT(why("hunter2hunter2hunter2"), Not(HasSubstr("hunter2")));
  EXPECT_THAT(why(absl::StrCat("w ", DigestOf(kToken), " x")), HasSubstr("3 fields"));
  EXPECT_THAT(why(absl::StrCat("w ", DigestOf(kToken), "00")), HasSubstr("64 hex digits"));
  EXPECT_THAT(why(absl::StrCat("w:x ", DigestOf(kToken))), HasSubstr("the name is not"));
  const std::string twice = absl::StrCat("a ", DigestOf(kToken), "\nb ", DigestOf(kToken));
  EXPECT_FALSE(TokenTable::Parse(twice, "tokens").ok());
}

}  // namespace
}  // namespace cairn::testing
