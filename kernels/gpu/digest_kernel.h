// XXH3-64 of segments, a warp each.
//
// The long form cuts its input into blocks of 16 stripes of 64 bytes. Eight sums of 64 bits go
// through the blocks in order: what a block adds depends on its bytes alone, and is scrambled in
// before the next. So a warp reads eight blocks at once, all lanes loading 16 bytes of each stripe
// in turn, adds up what each block adds, and only then lets the sums go through the eight. A lane
// has stripes lane / 4 and lane / 4 + 8 of each block, and there the 16 bytes of sums 2q and
// 2q + 1, q = lane % 4: a product needs its neighbour's bytes and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/gpu/digest_short.h"
#include "kernels/gpu/digest_words.h"
#include "kernels/gpu/gpu_kernels.h"
#include "kernels/simt/simt.h"

CAIRN_SIMT_BEGIN

struct alignas(16) TwoSums {
  uint64_t sum[2];

  CAIRN_SIMT_DEVICE void Add(const TwoSums& other) {
    sum[0] += other.sum[0];
    sum[1] += other.sum[1];
  }
  // What 16 bytes of a stripe add under their two words of the secret.
  CAIRN_SIMT_DEVICE void AddBytes(const simt::Bytes16& bytes, uint64_t key0, uint64_t key1) {
    const uint64_t data0 = uint64_t{bytes.word[1]} << 32 | bytes.word[0];
    const uint64_t data1 = uint64_t{bytes.word[3]} << 32 | bytes.word[2];
    const uint64_t keyed0 = data0 ^ key0;
    const uint64_t keyed1 = data1 ^ key1;
    sum[0] += data1 + (keyed0 & 0xffffffffu) * (keyed0 >> 32);
    sum[1] += data0 + (keyed1 & 0xffffffffu) * (keyed1 >> 32);
  }
};

CAIRN_SIMT_DEVICE uint64_t Scramble(uint64_t sum, uint64_t key) {
  return (sum ^ sum >> 47 ^ key) * kPrime32First;
}

// One segment above 240 bytes; all lanes of the warp.
struct LongHash {
  static constexpr uint32_t kStripeBytes = 64;
  static constexpr uint32_t kBlockStripes = 16;
  static constexpr uint32_t kBlockBytes = kStripeBytes * kBlockStripes;
  static constexpr uint32_t kBlocksAtOnce = 8;
  static constexpr uint32_t kHalf = kBlockBytes / 2;  // What the warp loads at once.

  SeededSecret secret;
  const std::byte* data;
  uint64_t bytes;
  uint32_t stripe;   // lane / 4
  uint32_t quarter;  // lane % 4
  uint64_t keys[4];  // Of the lane's bytes of its two stripes.
  TwoSums sums;      // Sums 2q and 2q + 1; every stripe's lanes have them.

  CAIRN_SIMT_DEVICE LongHash(const HashSecret& plain, const GpuSegment& segment)
      : secret{&plain, segment.seed},
        data(segment.data),
        bytes(segment.bytes),
        stripe(simt::Lane() / 4),
        quarter(simt::Lane() % 4) {
    for (uint32_t i = 0; i < 4; ++i) {
      keys[i] = secret.Word(stripe + 2 * quarter + i % 2 + i / 2 * 8);
    }
    // Sums begin as primes, two for each quarter.
    sums.sum[0] = quarter == 0   ? kPrime32Third
                  : quarter == 1 ? kPrime64Second
                  : quarter == 2 ? kPrime64Fourth
                                 : kPrime64Fifth;
    sums.sum[1] = quarter == 0   ? kPrime64First
                  : quarter == 1 ? kPrime64Third
                  : quarter == 2 ? kPrime32Second
                                 : kPrime32First;
  }

  CAIRN_SIMT_DEVICE uint64_t Hash() {
    const uint64_t blocks = (bytes - 1) / kBlockBytes;  // The last bytes are never a whole one.
    for (uint64_t block = 0; block < blocks; block += kBlocksAtOnce) {
      const uint64_t left = blocks - block;
      AddBlocks(block, left < kBlocksAtOnce ? static_cast<uint32_t>(left) : kBlocksAtOnce);
    }
    AddRest(blocks);
    return Merge();
  }

  CAIRN_SIMT_DEVICE simt::Bytes16 LoadMine(uint64_t at) const {
    return simt::LoadGlobalStreaming16(data + at + simt::Lane() * 16);
  }

  CAIRN_SIMT_DEVICE void AddBlocks(uint64_t first, uint32_t count) {
    simt::Bytes16 loaded[kBlocksAtOnce][2] = {};
    CAIRN_SIMT_UNROLL
    for (uint32_t b = 0; b < kBlocksAtOnce; ++b) {
      if (b >= count) break;
      const uint64_t at = (first + b) * kBlockBytes;
      loaded[b][0] = LoadMine(at);
      loaded[b][1] = LoadMine(at + kHalf);
    }
    TwoSums added[kBlocksAtOnce];
    CAIRN_SIMT_UNROLL
    for (uint32_t b = 0; b < kBlocksAtOnce; ++b) {
      added[b] = {};
      added[b].AddBytes(loaded[b][0], keys[0], keys[1]);
      added[b].AddBytes(loaded[b][1], keys[2], keys[3]);
    }
    Spread<4>(added);
    Spread<2>(added);
    Spread<1>(added);
    for (uint32_t b = 0; b < count; ++b) {
      sums.Add(simt::ShuffleFrom(added[0], b * 4 + quarter));
      ScrambleSums();
    }
  }

  // Of 2 * kKept blocks each lane keeps one half, adding what the lane across has of it. At the end
  // lanes of stripe s have what block s adds.
  template <uint32_t kKept>
  CAIRN_SIMT_DEVICE void Spread(TwoSums (&added)[kBlocksAtOnce]) const {
    const bool keeps_upper = (stripe & kKept) != 0;
    CAIRN_SIMT_UNROLL
    for (uint32_t i = 0; i < kKept; ++i) {
      const TwoSums given = keeps_upper ? added[i] : added[i + kKept];
      if (keeps_upper) added[i] = added[i + kKept];
      added[i].Add(simt::ShuffleXor(given, kKept * 4));
    }
  }

  CAIRN_SIMT_DEVICE void ScrambleSums() {
    for (uint32_t i = 0; i < 2; ++i) {
      sums.sum[i] = Scramble(sums.sum[i], secret.Word(16 + 2 * quarter + i));
    }
  }

  // The stripes behind the last whole block, and the last 64 bytes once more under words of their
  // own.
  CAIRN_SIMT_DEVICE void AddRest(uint64_t blocks) {
    const uint64_t begin = blocks * kBlockBytes;
    const uint32_t stripes = static_cast<uint32_t>((bytes - 1 - begin) / kStripeBytes);
    TwoSums added = {};
    if (stripe < stripes) added.AddBytes(LoadMine(begin), keys[0], keys[1]);
    if (stripe + 8 < stripes) added.AddBytes(LoadMine(begin + kHalf), keys[2], keys[3]);
    if (stripe == 0) {
      const std::byte* const last = data + bytes - kStripeBytes + quarter * 16;
      const uint64_t low = LoadBytes(last, 8);
      const uint64_t high = LoadBytes(last + 8, 8);
      const simt::Bytes16 words = {{static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32),
                                    static_cast<uint32_t>(high),
                                    static_cast<uint32_t>(high >> 32)}};
      added.AddBytes(words, secret.At(121 + quarter * 16), secret.At(129 + quarter * 16));
    }
    CAIRN_SIMT_UNROLL
    for (uint32_t apart = 4; apart < simt::kWarpLanes; apart *= 2) {
      added.Add(simt::ShuffleXor(added, apart));
    }
    sums.Add(added);
  }

  CAIRN_SIMT_DEVICE uint64_t Merge() const {
    uint64_t hash = FoldedProduct(sums.sum[0] ^ secret.At(11 + quarter * 16),
                                  sums.sum[1] ^ secret.At(19 + quarter * 16));
    hash += simt::ShuffleXor(hash, 1);
    hash += simt::ShuffleXor(hash, 2);
    return Avalanche(hash + bytes * kPrime64First);
  }
};

struct DigestKernel {
  struct Params {
    const GpuSegment* segments = nullptr;
    uint64_t segment_count = 0;
    const uint64_t* counted = nullptr;
    uint64_t* digests = nullptr;
    uint32_t* refused = nullptr;
    HashSecret secret;
  };
  static constexpr uint32_t kThreads = 128;
  static constexpr uint32_t kBlocksPerProcessor = 4;

  static CAIRN_SIMT_DEVICE void Run(const Params& params) {
    const uint64_t index = uint64_t{simt::BlockX()} * (kThreads / simt::kWarpLanes) + simt::Warp();
    uint64_t count = params.segment_count;
    if (params.counted != nullptr) {
      const uint64_t counted = simt::LoadGlobal(params.counted);
      count = counted < count ? counted : count;
    }
    if (index >= count) return;
    const GpuSegment* const at = params.segments + index;
    GpuSegment segment;
    segment.data = simt::LoadGlobal(&at->data);
    segment.bytes = simt::LoadGlobal(&at->bytes);
    segment.seed = simt::LoadGlobal(&at->seed);
    if (reinterpret_cast<uintptr_t>(segment.data) % 16 != 0) {
      if (simt::Lane() == 0 && params.refused != nullptr) simt::AtomicAdd(params.refused, 1);
      return;
    }
    uint64_t digest = 0;
    if (segment.bytes > kShortBytesMax) {
      digest = LongHash(params.secret, segment).Hash();
    } else if (simt::Lane() == 0) {
      digest =
          ShortHash{params.secret, segment.data, static_cast<uint32_t>(segment.bytes), segment.seed}
              .Hash();
    }
    if (simt::Lane() == 0) simt::StoreGlobal(params.digests + index, digest);
  }
};

CAIRN_SIMT_END
