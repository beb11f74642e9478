// TruncatingBlockHasher keeps exactly the bits it was told to keep of the real hasher's keys.
#include "tests/testing/truncating_block_hasher.h"

#include <gmock/gmock.h>

#include <set>
#include <string>
#include <vector>

namespace cairn::testing {
namespace {

BlockKey BlockOf(const BlockHasher& hasher, uint32_t token) {
  return hasher.Block(BlockKey{}, {&token, 1}, {});
}

TEST(TruncatingBlockHasherTest, KeepsTheFirstBitsAndClearsTheRest) {
  const BlockKey real = BlockOf(Sha256BlockHasher(), 1);
  for (size_t bits = 0; bits <= 128; ++bits) {
    const BlockKey key = BlockOf(TruncatingBlockHasher(bits), 1);
    for (size_t bit = 0; bit < 128; ++bit) {
      const int shift = static_cast<int>(7 - bit % 8);
      const int expected = bit < bits ? real.bytes[bit / 8] >> shift & 1 : 0;
      ASSERT_EQ(key.bytes[bit / 8] >> shift & 1, expected) << bits << " bits, bit " << bit;
    }
  }
}

TEST(TruncatingBlockHasherTest, FewBitsCollideSoon) {
  const TruncatingBlockHasher hasher(4);
  std::set<BlockKey> keys;
  for (uint32_t token = 0; token < 256; ++token) keys.insert(BlockOf(hasher, token));
  EXPECT_LE(keys.size(), 16u);
  EXPECT_GT(keys.size(), 8u);
}

TEST(TruncatingBlockHasherTest, CutsExternalKeysToo) {
  const TruncatingBlockHasher hasher(0);
  EXPECT_EQ(hasher.External(BlockKey{}, "a"), BlockKey{});
  EXPECT_NE(Sha256BlockHasher().External(BlockKey{}, "a"), BlockKey{});
}

TEST(TruncatingBlockHasherDeathTest, AKeyHasNoMoreThan128Bits) {
  EXPECT_DEATH(TruncatingBlockHasher(129), "bits <= 8");
}

}  // namespace
}  // namespace cairn::testing
