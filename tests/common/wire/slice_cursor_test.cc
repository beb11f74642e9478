// Walks over random cuts of known bytes and compares with the uncut bytes.
#include "common/wire/slice_cursor.h"

#include <string>
#include <vector>

#include "tests/common/wire/frame_samples.h"

namespace cairn::testing {
namespace {

std::vector<grpc::Slice> Cut(const std::string& bytes, Random& random) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(Scatter(bytes, random).Dump(&slices).ok());
  return slices;
}

std::string Take(SliceCursor* cursor, size_t size) {
  std::string out(size, '\0');
  cursor->Copy(reinterpret_cast<uint8_t*>(out.data()), size);
  return out;
}

TEST(SliceCursor, NothingIsAtItsEnd) {
  SliceCursor cursor;
  EXPECT_EQ(cursor.remaining(), 0u);
  EXPECT_TRUE(cursor.Next(1).empty());
  cursor.Skip(0);
}

TEST(SliceCursor, CopiesSkipsAndSpansAgreeWithTheUncutBytes) {
  Random random(21);
  for (int i = 0; i < 500; ++i) {
    std::string bytes(Below(random, 300), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    const std::vector<grpc::Slice> slices = Cut(bytes, random);
    SliceCursor cursor{absl::MakeConstSpan(slices)};
    size_t at = 0;
    while (cursor.remaining() > 0) {
      const size_t size = Below(random, cursor.remaining() + 1);
      if (Below(random, 3) == 0) {
        cursor.Skip(size);
        at += size;
      } else if (Below(random, 2) == 0) {
        EXPECT_EQ(Take(&cursor, size), bytes.substr(at, size));
        at += size;
      } else {
        const absl::Span<const uint8_t> run = cursor.Next(size + 1);
        ASSERT_FALSE(run.empty());
        EXPECT_EQ(std::string(run.begin(), run.end()), bytes.substr(at, run.size()));
        at += run.size();
      }
      EXPECT_EQ(cursor.remaining(), bytes.size() - at);
    }
  }
}

TEST(SliceCursor, TruncatedEndsEarly) {
  Random random(22);
  const std::vector<grpc::Slice> slices = Cut("abcdefgh", random);
  SliceCursor cursor{absl::MakeConstSpan(slices)};
  cursor.Skip(2);
  cursor.Truncate(3);
  EXPECT_EQ(Take(&cursor, 3), "cde");
  EXPECT_TRUE(cursor.Next(1).empty());
}

TEST(SliceCursor, CopiesMoveIndependently) {
  Random random(23);
  const std::vector<grpc::Slice> slices = Cut("abcdefgh", random);
  SliceCursor first{absl::MakeConstSpan(slices)};
  SliceCursor second = first;
  EXPECT_EQ(Take(&first, 4), "abcd");
  EXPECT_EQ(Take(&second, 4), "abcd");
}

TEST(SliceCursorDeathTest, ReadingPastTheEndAborts) {
  SliceCursor cursor;
  uint8_t byte;
  EXPECT_DEATH(cursor.Copy(&byte, 1), "size <= remaining_");
  EXPECT_DEATH(cursor.Skip(1), "size <= remaining_");
  EXPECT_DEATH(cursor.Truncate(1), "size <= remaining_");
}

}  // namespace
}  // namespace cairn::testing
