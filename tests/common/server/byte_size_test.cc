// Parses and prints sizes, by hand and through the flag functions.
#include "common/server/byte_size.h"

#include "gmock/gmock.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;

uint64_t BytesOf(absl::string_view text) {
  const auto size = ByteSize::Parse(text);
  EXPECT_TRUE(size.ok()) << size.status();
  return size.ok() ? size->bytes() : 0;
}

TEST(ByteSizeTest, TakesPlainBytesAndUnits) {
  EXPECT_EQ(BytesOf("0"), 0);
  EXPECT_EQ(BytesOf("4096"), 4096);
  EXPECT_EQ(BytesOf("17B"), 17);
  EXPECT_EQ(BytesOf("3KiB"), 3 << 10);
  EXPECT_EQ(BytesOf("256MiB"), 256 << 20);
  EXPECT_EQ(BytesOf("1GiB"), 1 << 30);
  EXPECT_EQ(BytesOf("2TiB"), uint64_t{2} << 40);
}

TEST(ByteSizeTest, RefusesAnythingElseAndNamesIt) {
  for (const char* text :
       {"", "MiB", "1.5GiB", "-1", "1 MiB", "1MB", "1mib", "1MiB ", "0x10", "1M"}) {
    const auto size = ByteSize::Parse(text);
    ASSERT_EQ(size.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(size.status().message(), HasSubstr(text));
  }
}

TEST(ByteSizeTest, RefusesWhatDoesNotFit) {
  EXPECT_EQ(BytesOf("9223372036854775807"), 9223372036854775807u);
  EXPECT_FALSE(ByteSize::Parse("9223372036854775808").ok());
  EXPECT_FALSE(ByteSize::Parse("8388608TiB").ok());
  EXPECT_FALSE(ByteSize::Parse("99999999999999999999999").ok());
}

TEST(ByteSizeTest, PrintsTheLargestUnitThatLosesNothing) {
  EXPECT_EQ(ByteSize(0).ToString(), "0B");
  EXPECT_EQ(ByteSize(1023).ToString(), "1023B");
  EXPECT_EQ(ByteSize::KiB(1536).ToString(), "1536KiB");
  EXPECT_EQ(ByteSize::MiB(1024).ToString(), "1GiB");
  EXPECT_EQ(ByteSize::GiB(2048).ToString(), "2TiB");
}

TEST(ByteSizeTest, WhatItPrintsItParses) {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{1025}, uint64_t{3} << 20,
                               uint64_t{7} << 40, (uint64_t{1} << 63) - 1}) {
    EXPECT_EQ(BytesOf(ByteSize(bytes).ToString()), bytes);
  }
}

TEST(ByteSizeTest, IsAFlagType) {
  ByteSize size(5);
  std::string error;
  EXPECT_TRUE(AbslParseFlag("64KiB", &size, &error));
  EXPECT_EQ(AbslUnparseFlag(size), "64KiB");
  EXPECT_FALSE(AbslParseFlag("64KB", &size, &error));
  EXPECT_THAT(error, HasSubstr("64KB"));
  EXPECT_EQ(size, ByteSize::KiB(64)) << "a value that is refused changes nothing";
}

}  // namespace
}  // namespace cairn
