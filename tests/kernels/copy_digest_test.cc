// Bytes and hash of CopyAndHash against memcpy and ByteHash64, over sizes around its limits and
// over alignments, with guards on both sides.
#include "kernels/copy_digest.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/byte_hash.h"

namespace cairn::kernels {
namespace {

constexpr uint64_t kGuard = 128;

void ExpectCopied(uint64_t bytes, uint64_t from_shift, uint64_t to_shift) {
  std::mt19937_64 random(bytes + from_shift);
  std::vector<uint8_t> from(bytes + from_shift + 8);
  for (uint8_t& byte : from) byte = static_cast<uint8_t>(random());
  std::vector<uint8_t> to(bytes + 2 * kGuard + 64, 0xee);
  uint8_t* const target = to.data() + kGuard + to_shift;
  const uint64_t hash = CopyAndHash(target, from.data() + from_shift, bytes, 17);
  EXPECT_EQ(hash, ByteHash64(from.data() + from_shift, bytes, 17));
  if (bytes > 0) {
    EXPECT_EQ(std::memcmp(target, from.data() + from_shift, bytes), 0);
  }
  for (uint64_t i = 1; i <= kGuard; ++i) {
    ASSERT_EQ(*(target - i), 0xee) << bytes;
    ASSERT_EQ(target[bytes + i - 1], 0xee) << bytes;
  }
}

TEST(CopyDigestTest, EverySizeAndAlignment) {
  for (uint64_t bytes :
       {uint64_t{0}, uint64_t{1}, uint64_t{63}, uint64_t{4096}, kStreamBytesMin - 1,
        kStreamBytesMin, kStreamBytesMin + 1, kStreamBytesMin + 8255, uint64_t{1} << 20}) {
    for (uint64_t from_shift : {0, 1}) {
      for (uint64_t to_shift : {0, 3, 32, 63}) ExpectCopied(bytes, from_shift, to_shift);
    }
  }
}

TEST(CopyDigestTest, PiecesCutAnywhereGiveTheHashOfTheWhole) {
  std::mt19937_64 random(3);
  std::vector<uint8_t> from(1 << 16);
  for (uint8_t& byte : from) byte = static_cast<uint8_t>(random());
  for (int round = 0; round < 50; ++round) {
    std::vector<uint8_t> to(from.size() + 2 * kGuard, 0xee);
    uint8_t* const target = to.data() + kGuard;
    StreamingCopyHasher copier(99);
    for (size_t done = 0; done < from.size();) {
      const size_t piece =
          std::min<size_t>(random() % (round % 2 == 0 ? 90 : 9000), from.size() - done);
      copier.Copy(target + done, from.data() + done, piece);
      done += piece;
    }
    EXPECT_EQ(copier.Digest(), ByteHash64(from.data(), from.size(), 99));
    ASSERT_EQ(std::memcmp(target, from.data(), from.size()), 0);
    ASSERT_EQ(target[-1], 0xee);
    ASSERT_EQ(target[from.size()], 0xee);
  }
}

}  // namespace
}  // namespace cairn::kernels
