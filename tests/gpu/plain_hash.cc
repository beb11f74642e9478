#include "tests/gpu/plain_hash.h"

#include <cstring>

namespace cairn::gpu_check {
namespace {

constexpr unsigned char kSecret[192] = {
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
    0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
    0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
    0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
    0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
    0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
    0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
    0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
    0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e};

constexpr uint64_t kPrime32[] = {0x9E3779B1u, 0x85EBCA77u, 0xC2B2AE3Du};
constexpr uint64_t kPrime64[] = {0x9E3779B185EBCA87u, 0xC2B2AE3D27D4EB4Fu, 0x165667B19E3779F9u,
                                 0x85EBCA77C2B2AE63u, 0x27D4EB2F165667C5u};

uint64_t Read64(const unsigned char* at) {
  uint64_t value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

uint32_t Read32(const unsigned char* at) {
  uint32_t value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

uint64_t Fold(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t Finish(uint64_t hash) {
  hash = (hash ^ hash >> 37) * 0x165667919E3779F9u;
  return hash ^ hash >> 32;
}

uint64_t Finish64(uint64_t hash) {
  hash = (hash ^ hash >> 33) * kPrime64[1];
  hash = (hash ^ hash >> 29) * kPrime64[2];
  return hash ^ hash >> 32;
}

uint64_t UpTo16(const unsigned char* data, uint64_t bytes, uint64_t seed) {
  if (bytes > 8) {
    const uint64_t low = Read64(data) ^ ((Read64(kSecret + 24) ^ Read64(kSecret + 32)) + seed);
    const uint64_t high =
        Read64(data + bytes - 8) ^ ((Read64(kSecret + 40) ^ Read64(kSecret + 48)) - seed);
    return Finish(bytes + __builtin_bswap64(low) + high + Fold(low, high));
  }
  if (bytes >= 4) {
    seed ^= uint64_t{__builtin_bswap32(static_cast<uint32_t>(seed))} << 32;
    const uint64_t input = Read32(data + bytes - 4) + (uint64_t{Read32(data)} << 32);
    uint64_t hash = input ^ ((Read64(kSecret + 8) ^ Read64(kSecret + 16)) - seed);
    hash ^= (hash << 49 | hash >> 15) ^ (hash << 24 | hash >> 40);
    hash *= 0x9FB21C651E98DF25u;
    hash ^= (hash >> 35) + bytes;
    hash *= 0x9FB21C651E98DF25u;
    return hash ^ hash >> 28;
  }
  if (bytes == 0) return Finish64(seed ^ Read64(kSecret + 56) ^ Read64(kSecret + 64));
  const uint32_t combined = uint32_t{data[0]} << 16 | uint32_t{data[bytes / 2]} << 24 |
                            uint32_t{data[bytes - 1]} | static_cast<uint32_t>(bytes) << 8;
  return Finish64(combined ^ ((Read32(kSecret) ^ Read32(kSecret + 4)) + seed));
}

uint64_t Mix(const unsigned char* data, const unsigned char* secret, uint64_t seed) {
  return Fold(Read64(data) ^ (Read64(secret) + seed),
              Read64(data + 8) ^ (Read64(secret + 8) - seed));
}

uint64_t UpTo240(const unsigned char* data, uint64_t bytes, uint64_t seed) {
  uint64_t hash = bytes * kPrime64[0];
  if (bytes <= 128) {
    for (uint64_t i = 0; i * 32 < bytes; ++i) {
      hash += Mix(data + 16 * i, kSecret + 32 * i, seed);
      hash += Mix(data + bytes - 16 * (i + 1), kSecret + 32 * i + 16, seed);
    }
    return Finish(hash);
  }
  for (uint64_t i = 0; i < 8; ++i) hash += Mix(data + 16 * i, kSecret + 16 * i, seed);
  hash = Finish(hash);
  for (uint64_t i = 8; i < bytes / 16; ++i) {
    hash += Mix(data + 16 * i, kSecret + 16 * (i - 8) + 3, seed);
  }
  return Finish(hash + Mix(data + bytes - 16, kSecret + 119, seed));
}

uint64_t Long(const unsigned char* data, uint64_t bytes, uint64_t seed) {
  unsigned char secret[sizeof(kSecret)];
  for (size_t i = 0; i < sizeof(secret); i += 16) {
    const uint64_t words[2] = {Read64(kSecret + i) + seed, Read64(kSecret + i + 8) - seed};
    std::memcpy(secret + i, words, sizeof(words));
  }
  uint64_t sums[8] = {kPrime32[2], kPrime64[0], kPrime64[1], kPrime64[2],
                      kPrime64[3], kPrime32[1], kPrime64[4], kPrime32[0]};
  const auto add = [&sums](const unsigned char* stripe, const unsigned char* key) {
    for (size_t i = 0; i < 8; ++i) {
      const uint64_t value = Read64(stripe + 8 * i);
      const uint64_t keyed = value ^ Read64(key + 8 * i);
      sums[i ^ 1] += value;
      sums[i] += (keyed & 0xffffffffu) * (keyed >> 32);
    }
  };
  for (uint64_t stripe = 0; stripe < (bytes - 1) / 64; ++stripe) {
    add(data + 64 * stripe, secret + 8 * (stripe % 16));
    if (stripe % 16 != 15) continue;
    for (size_t i = 0; i < 8; ++i) {
      sums[i] = (sums[i] ^ sums[i] >> 47 ^ Read64(secret + 128 + 8 * i)) * kPrime32[0];
    }
  }
  add(data + bytes - 64, secret + 121);
  uint64_t hash = bytes * kPrime64[0];
  for (size_t i = 0; i < 4; ++i) {
    hash += Fold(sums[2 * i] ^ Read64(secret + 11 + 16 * i),
                 sums[2 * i + 1] ^ Read64(secret + 19 + 16 * i));
  }
  return Finish(hash);
}

}  // namespace

uint64_t PlainHash64(const void* data, size_t bytes, uint64_t seed) {
  const auto* const at = static_cast<const unsigned char*>(data);
  if (bytes <= 16) return UpTo16(at, bytes, seed);
  if (bytes <= 240) return UpTo240(at, bytes, seed);
  return Long(at, bytes, seed);
}

}  // namespace cairn::gpu_check
