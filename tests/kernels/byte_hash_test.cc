// ByteHash64 against known answers of XXH3-64 and against libxxhash's plain, undispatched entry
// points; ByteHasher against ByteHash64 over many sizes and cuts.
#include "kernels/byte_hash.h"

#include <gmock/gmock.h>
#include <xxhash.h>

#include <random>
#include <vector>

namespace cairn::kernels {
namespace {

std::vector<uint8_t> SeededBytes(size_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint8_t> bytes(size);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

// Sizes on both sides of the places where XXH3 changes its algorithm, and a large one.
constexpr size_t kSizes[] = {0,   1,   3,   4,   8,   9,    16,   17,   64,   128,
                             129, 240, 241, 256, 512, 1023, 1024, 1025, 4096, 1 << 20};

TEST(ByteHashTest, EmptyInputHasItsKnownHash) {
  EXPECT_EQ(ByteHash64(nullptr, 0, 0), 0x2d06800538d394c2u);
}

TEST(ByteHashTest, AgreesWithPlainXxh3ForEverySizeAndSeed) {
  const std::vector<uint8_t> bytes = SeededBytes(1 << 20, 1);
  for (size_t size : kSizes) {
    for (uint64_t seed : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}, uint64_t{0x0123456789abcdef}}) {
      EXPECT_EQ(ByteHash64(bytes.data(), size, seed),
                (XXH3_64bits_withSeed)(bytes.data(), size, seed))
          << size << " bytes, seed " << seed;
    }
  }
}

TEST(ByteHashTest, AgreesAtEveryAlignment) {
  const std::vector<uint8_t> bytes = SeededBytes(5000, 2);
  for (size_t offset = 0; offset < 64; ++offset) {
    const std::vector<uint8_t> copy(bytes.begin() + static_cast<ptrdiff_t>(offset),
                                    bytes.begin() + static_cast<ptrdiff_t>(offset) + 4096);
    EXPECT_EQ(ByteHash64(bytes.data() + offset, 4096, 3), ByteHash64(copy.data(), 4096, 3));
  }
}

TEST(ByteHashTest, OneFlippedBitChangesTheHash) {
  std::vector<uint8_t> bytes = SeededBytes(8192, 3);
  const uint64_t before = ByteHash64(bytes.data(), bytes.size(), 0);
  for (size_t at = 0; at < bytes.size(); at += 97) {
    bytes[at] ^= 0x10;
    EXPECT_NE(ByteHash64(bytes.data(), bytes.size(), 0), before) << at;
    bytes[at] ^= 0x10;
  }
}

TEST(ByteHasherTest, EqualsTheOneShotHashHoweverBytesAreCut) {
  const std::vector<uint8_t> bytes = SeededBytes(1 << 20, 4);
  std::mt19937 random(5);
  for (size_t size : kSizes) {
    for (uint64_t seed : {uint64_t{0}, uint64_t{77}}) {
      ByteHasher hasher(seed);
      for (size_t at = 0; at < size;) {
        const size_t piece = std::min<size_t>(size - at, random() % 3000);
        hasher.Update(bytes.data() + at, piece);
        at += piece;
      }
      EXPECT_EQ(hasher.Digest(), ByteHash64(bytes.data(), size, seed)) << size;
    }
  }
}

TEST(ByteHasherTest, EmptyUpdateChangesNothing) {
  ByteHasher hasher(9);
  hasher.Update(nullptr, 0);
  EXPECT_EQ(hasher.Digest(), ByteHash64(nullptr, 0, 9));
}

TEST(ByteHasherTest, GoesOnAfterADigest) {
  const std::vector<uint8_t> bytes = SeededBytes(3000, 6);
  ByteHasher hasher(1);
  hasher.Update(bytes.data(), 1000);
  EXPECT_EQ(hasher.Digest(), ByteHash64(bytes.data(), 1000, 1));
  hasher.Update(bytes.data() + 1000, 2000);
  EXPECT_EQ(hasher.Digest(), ByteHash64(bytes.data(), 3000, 1));
}

TEST(ByteHasherTest, ACopyGoesOnFromTheSamePointAlone) {
  const std::vector<uint8_t> bytes = SeededBytes(3000, 7);
  ByteHasher hasher(1);
  hasher.Update(bytes.data(), 1000);
  ByteHasher copy = hasher;
  ByteHasher assigned(5);
  assigned = hasher;
  hasher.Update(bytes.data(), 7);
  copy.Update(bytes.data() + 1000, 2000);
  assigned.Update(bytes.data() + 1000, 2000);
  EXPECT_EQ(copy.Digest(), ByteHash64(bytes.data(), 3000, 1));
  EXPECT_EQ(assigned.Digest(), copy.Digest());
}

TEST(ByteHasherTest, ResetForgetsBytesAndSeed) {
  const std::vector<uint8_t> bytes = SeededBytes(2000, 8);
  for (uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{2}}) {
    ByteHasher hasher(1);
    hasher.Update(bytes.data(), 1500);
    hasher.Reset(seed);
    hasher.Update(bytes.data(), 2000);
    EXPECT_EQ(hasher.Digest(), ByteHash64(bytes.data(), 2000, seed)) << seed;
  }
}

}  // namespace
}  // namespace cairn::kernels
