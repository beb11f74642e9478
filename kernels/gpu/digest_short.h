// XXH3-64 of at most 240 bytes, by one thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/gpu/digest_words.h"
#include "kernels/simt/simt.h"

CAIRN_SIMT_BEGIN

inline constexpr uint64_t kShortBytesMax = 240;

struct ShortHash {
  const HashSecret& secret;
  const std::byte* data;
  uint32_t bytes;
  uint64_t seed;

  CAIRN_SIMT_DEVICE uint64_t Hash() const {
    if (bytes <= 16) return OfUpTo16();
    return bytes <= 128 ? OfUpTo128() : OfUpTo240();
  }

  CAIRN_SIMT_DEVICE uint64_t OfUpTo16() const {
    if (bytes == 0) return Avalanche64(seed ^ secret.At(56) ^ secret.At(64));
    if (bytes <= 3) {
      const uint32_t combined = static_cast<uint32_t>(LoadBytes(data, 1)) << 16 |
                                static_cast<uint32_t>(LoadBytes(data + bytes / 2, 1)) << 24 |
                                static_cast<uint32_t>(LoadBytes(data + bytes - 1, 1)) | bytes << 8;
      const uint64_t flip = ((secret.At(0) ^ secret.At(4)) & 0xffffffffu) + seed;
      return Avalanche64(combined ^ flip);
    }
    if (bytes <= 8) {
      const uint64_t mixed = seed ^ (SwapBytes(seed & 0xffffffffu) >> 32) << 32;
      const uint64_t input = LoadBytes(data + bytes - 4, 4) + (LoadBytes(data, 4) << 32);
      uint64_t hash = input ^ ((secret.At(8) ^ secret.At(16)) - mixed);
      hash ^= RotateLeft(hash, 49) ^ RotateLeft(hash, 24);
      hash *= 0x9FB21C651E98DF25u;
      hash ^= (hash >> 35) + bytes;
      hash *= 0x9FB21C651E98DF25u;
      return hash ^ hash >> 28;
    }
    const uint64_t low = LoadBytes(data, 8) ^ ((secret.At(24) ^ secret.At(32)) + seed);
    const uint64_t high = LoadBytes(data + bytes - 8, 8) ^ ((secret.At(40) ^ secret.At(48)) - seed);
    return Avalanche(bytes + SwapBytes(low) + high + FoldedProduct(low, high));
  }

  CAIRN_SIMT_DEVICE uint64_t Mix16(uint32_t at, uint32_t secret_at) const {
    return FoldedProduct(LoadBytes(data + at, 8) ^ (secret.At(secret_at) + seed),
                         LoadBytes(data + at + 8, 8) ^ (secret.At(secret_at + 8) - seed));
  }

  // From both ends inwards.
  CAIRN_SIMT_DEVICE uint64_t OfUpTo128() const {
    uint64_t hash = bytes * kPrime64First;
    for (uint32_t i = (bytes - 1) / 32 + 1; i-- > 0;) {
      hash += Mix16(i * 16, i * 32) + Mix16(bytes - (i + 1) * 16, i * 32 + 16);
    }
    return Avalanche(hash);
  }

  CAIRN_SIMT_DEVICE uint64_t OfUpTo240() const {
    uint64_t hash = bytes * kPrime64First;
    for (uint32_t i = 0; i < 8; ++i) hash += Mix16(i * 16, i * 16);
    hash = Avalanche(hash);
    for (uint32_t i = 8; i < bytes / 16; ++i) hash += Mix16(i * 16, (i - 8) * 16 + 3);
    return Avalanche(hash + Mix16(bytes - 16, 136 - 17));
  }
};

CAIRN_SIMT_END
