// Hexadecimal text and sixteen-byte ids: round trips, and what is refused.
#include <gmock/gmock.h>

#include <set>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "common/base/bytes16.h"
#include "common/base/hex.h"
#include "common/base/random_source.h"

namespace cairn {
namespace {

static_assert(!std::is_convertible_v<LeaseId, BlockKey>);
static_assert(!std::is_convertible_v<TokenId, LeaseId>);

TEST(HexTest, WritesLowerCaseTwoDigitsAByte) {
  EXPECT_EQ(ToHex(absl::string_view("\x00\x0f\xff", 3)), "000fff");
  EXPECT_EQ(ToHex(""), "");
}

TEST(HexTest, ReadsBothCases) {
  EXPECT_EQ(*FromHex("00aAfF"), std::string("\x00\xaa\xff", 3));
  EXPECT_EQ(*FromHex(""), "");
}

TEST(HexTest, EveryByteComesBack) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<char>(i));
  EXPECT_EQ(*FromHex(ToHex(bytes)), bytes);
}

TEST(HexTest, RefusesAnOddNumberOfDigits) {
  EXPECT_EQ(FromHex("abc").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(HexTest, RefusesAnythingButDigits) {
  for (absl::string_view text : {"0g", "0x", " 0", "0\n", "-1"}) {
    EXPECT_EQ(FromHex(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(Bytes16Test, ReadsExactlySixteenBytes) {
  const std::string bytes = "0123456789abcdef";
  EXPECT_EQ(BlockKey::FromBytes(bytes)->view(), bytes);
  EXPECT_EQ(BlockKey::FromBytes(bytes + "0"), std::nullopt);
  EXPECT_EQ(BlockKey::FromBytes(bytes.substr(1)), std::nullopt);
  EXPECT_EQ(BlockKey::FromBytes(""), std::nullopt);
}

TEST(Bytes16Test, IsAllZeroWhenNew) { EXPECT_EQ(BlockKey().view(), std::string(16, '\0')); }

TEST(Bytes16Test, ComparesByBytesUnsigned) {
  const BlockKey low = *BlockKey::FromBytes(std::string(16, '\x7f'));
  const BlockKey high = *BlockKey::FromBytes(std::string(16, '\x80'));
  EXPECT_TRUE(low < high);
  EXPECT_FALSE(high < low);
  EXPECT_TRUE(low != high);
}

TEST(Bytes16Test, IsAKeyOfHashedSets) {
  absl::flat_hash_set<BlockKey> set;
  for (char c = 'a'; c <= 'z'; ++c) set.insert(*BlockKey::FromBytes(std::string(16, c)));
  set.insert(*BlockKey::FromBytes(std::string(16, 'a')));
  EXPECT_EQ(set.size(), 26u);
  EXPECT_TRUE(set.contains(*BlockKey::FromBytes(std::string(16, 'q'))));
}

TEST(SecureRandomTest, DrawsIdsThatDiffer) {
  SecureRandom random;
  std::set<LeaseId> ids;
  for (int i = 0; i < 1000; ++i) ids.insert(random.New<LeaseId>());
  EXPECT_EQ(ids.size(), 1000u);
}

}  // namespace
}  // namespace cairn
