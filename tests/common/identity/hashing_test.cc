// Our SHA-256 against OpenSSL's EVP interface for every length around its padding; block keys
// against the contract's formula spelled out with EVP; segment digests and what they bind to.
#include <gmock/gmock.h>
#include <openssl/evp.h>

#include <random>
#include <set>

#include "common/base/hex.h"
#include "common/identity/block_hasher.h"
#include "common/identity/frame.h"
#include "common/identity/segment_digest.h"
#include "common/identity/sha256.h"

namespace cairn {
namespace {

std::string EvpSha256(absl::string_view message) {
  std::string digest(32, '\0');
  unsigned int size = 0;
  EXPECT_EQ(EVP_Digest(message.data(), message.size(), reinterpret_cast<uint8_t*>(digest.data()),
                       &size, EVP_sha256(), nullptr),
            1);
  return digest;
}

std::string AsString(const Sha256Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

std::string SeededString(size_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// The contract's formula for key scheme 1, as text.
std::string ExpectedBlockKey(const BlockKey& parent, const std::vector<uint32_t>& tokens,
                             absl::string_view extra) {
  std::string message = "cairn/block/v1";
  message.append(parent.view().data(), parent.view().size());
  AppendU32(&message, static_cast<uint32_t>(tokens.size()));
  for (uint32_t token : tokens) AppendU32(&message, token);
  AppendU32(&message, static_cast<uint32_t>(extra.size()));
  message.append(extra.data(), extra.size());
  return EvpSha256(message).substr(0, 16);
}

TEST(Sha256Test, HasItsKnownAnswer) {
  EXPECT_EQ(ToHex(AsString(Sha256("abc"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256Test, AgreesWithEvpForEveryLength) {
  for (size_t size = 0; size <= 300; ++size) {
    const std::string message = SeededString(size, static_cast<uint32_t>(size));
    std::string buffer = message;
    buffer.resize(size + kSha256PaddingBytesMax, '\x5a');
    auto* bytes = reinterpret_cast<uint8_t*>(buffer.data());
    EXPECT_EQ(AsString(Sha256InPlace(bytes, size)), EvpSha256(message)) << size;
    EXPECT_EQ(AsString(Sha256(message)), EvpSha256(message)) << size;
    const absl::string_view view = message;
    EXPECT_EQ(AsString(Sha256OfPieces({view.substr(0, size / 3), {}, view.substr(size / 3)})),
              EvpSha256(message))
        << size;
  }
}

TEST(Sha256Test, PaddingTakesNineBytesAtLeast) {
  EXPECT_EQ(Sha256PaddedBytes(0), 64u);
  EXPECT_EQ(Sha256PaddedBytes(55), 64u);
  EXPECT_EQ(Sha256PaddedBytes(56), 128u);
  EXPECT_EQ(Sha256PaddedBytes(64), 128u);
}

TEST(BlockHasherTest, AgreesWithTheFormulaForEverySizeOfBlockAndExtra) {
  const Sha256BlockHasher hasher;
  BlockKey parent = *BlockKey::FromBytes(SeededString(16, 1));
  std::mt19937 random(2);
  for (size_t count : {0, 1, 5, 16, 64, 100, 512, 1000, 1070, 1071, 1080, 1090, 4096, 16384}) {
    for (size_t extra_bytes : {0, 37, 74, 3700, 37888}) {
      std::vector<uint32_t> tokens(count);
      for (uint32_t& token : tokens) token = static_cast<uint32_t>(random());
      const std::string extra = SeededString(extra_bytes, 3);
      const BlockKey key = hasher.Block(parent, tokens, extra);
      EXPECT_EQ(ToHex(key.view()), ToHex(ExpectedBlockKey(parent, tokens, extra)))
          << count << " tokens, " << extra_bytes << " bytes of extra";
      parent = key;
    }
  }
}

TEST(BlockHasherTest, AgreesAtEverySizeWhereItStopsUsingTheStack) {
  const Sha256BlockHasher hasher;
  for (size_t count = 1040; count < 1100; ++count) {
    const std::vector<uint32_t> tokens(count, 7);
    EXPECT_EQ(hasher.Block(BlockKey{}, tokens, {}).view(),
              absl::string_view(ExpectedBlockKey(BlockKey{}, tokens, {})))
        << count;
  }
}

TEST(BlockHasherTest, ATokenIsNotAnExtra) {
  const Sha256BlockHasher hasher;
  const std::vector<uint32_t> two = {1, 0}, one = {1};
  EXPECT_NE(hasher.Block(BlockKey{}, two, {}),
            hasher.Block(BlockKey{}, one, absl::string_view("\0\0\0\0", 4)));
}

TEST(SegmentDigestTest, BindsToKeyGroupSliceAndLayer) {
  const std::vector<uint8_t> bytes(4096, 0x42);
  BlockKey key = *BlockKey::FromBytes(SeededString(16, 4));
  std::set<uint64_t> seen;
  for (const SegmentId& id : {SegmentId{0, 0, 0}, SegmentId{1, 0, 0}, SegmentId{0, 1, 0},
                              SegmentId{0, 0, 1}, SegmentId{1, 1, 1}}) {
    EXPECT_TRUE(seen.insert(SegmentDigest(key, id, bytes)).second);
  }
  key.bytes[7] ^= 0x80;
  EXPECT_TRUE(seen.insert(SegmentDigest(key, {0, 0, 0}, bytes)).second);
}

TEST(SegmentDigestTest, PiecesGiveTheDigestOfTheWhole) {
  const std::string bytes = SeededString(10'000, 5);
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  const BlockKey key = *BlockKey::FromBytes(SeededString(16, 6));
  kernels::ByteHasher hasher = SegmentHasher(key, {2, 3, 4});
  hasher.Update(data, 4000);
  hasher.Update(data + 4000, 6000);
  EXPECT_EQ(hasher.Digest(), SegmentDigest(key, {2, 3, 4}, {data, bytes.size()}));
}

TEST(SegmentDigestTest, APartsDigestDependsOnTheOrderOfLayers) {
  EXPECT_NE(PartDigest({1, 2}), PartDigest({2, 1}));
  EXPECT_NE(PartDigest({1}), PartDigest({1, 0}));
}

TEST(FeedDigestTest, KeysThatLeaveTakeTheirShareWithThem) {
  const BlockKey a = *BlockKey::FromBytes(SeededString(16, 7));
  const BlockKey b = *BlockKey::FromBytes(SeededString(16, 8));
  uint64_t sum = FeedKeyDigest(a);
  sum += FeedKeyDigest(b);
  sum -= FeedKeyDigest(a);
  EXPECT_EQ(sum, FeedKeyDigest(b));
  EXPECT_NE(FeedKeyDigest(a), FeedKeyDigest(b));
}

}  // namespace
}  // namespace cairn
