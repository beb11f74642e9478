// The two matrix products of avx512_tile.cc: keys by queries, weights by values.
//
// R rows (1, 2, 4, 8 or 16) share a vector in the first: 64 / R bytes of a key are broadcast to all
// rows, so that no key is unpacked and every lane works whatever R is. Both products prefetch the
// next tile evenly, as many bytes as they read themselves: without it neither reaches half of the
// memory's speed.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>

#include "kernels/attention/avx512_decode.h"
#include "kernels/attention/avx512_softmax.h"
#include "kernels/attention/avx512_target.h"
#include "kernels/attention/tile_ops.h"

CAIRN_AVX512_BEGIN
namespace cairn::kernels::avx512 {

inline __m512 DotPairs(__m512 sum, __m512i a, __m512i b) {
  return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
}

// a's and b's sums of adjacent lanes, interleaved.
inline __m512 AddAdjacent(__m512 a, __m512 b) {
  return _mm512_add_ps(_mm512_mask_moveldup_ps(a, 0xaaaa, b),
                       _mm512_mask_movehdup_ps(b, 0x5555, a));
}

inline __m512 AddPairs(__m512 a, __m512 b) {
  const __m512d x = _mm512_castps_pd(a), y = _mm512_castps_pd(b);
  return _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(x, y)),
                       _mm512_castpd_ps(_mm512_unpackhi_pd(x, y)));
}

inline __m512 AddQuads(__m512 a, __m512 b) {
  const __m512i low = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
  const __m512i high = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
  const __m512d x = _mm512_castps_pd(a), y = _mm512_castps_pd(b);
  return _mm512_add_ps(_mm512_castpd_ps(_mm512_permutex2var_pd(x, low, y)),
                       _mm512_castpd_ps(_mm512_permutex2var_pd(x, high, y)));
}

inline __m512 AddHalves(__m512 a, __m512 b) {
  return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
}

// Sixteen tokens' sums, R rows in each, 16 / R lanes a row, to R vectors of scores.
template <int R>
inline void StoreScores(__m512* sums, float* scores) {
  int count = 16;
  if constexpr (R <= 8) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) sums[i] = AddAdjacent(sums[2 * i], sums[2 * i + 1]);
    count = 8;
  }
  if constexpr (R <= 4) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) sums[i] = AddPairs(sums[2 * i], sums[2 * i + 1]);
    count = 4;
  }
  if constexpr (R <= 2) {
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) sums[i] = AddQuads(sums[2 * i], sums[2 * i + 1]);
    count = 2;
  }
  if constexpr (R <= 1) {
    sums[0] = AddHalves(sums[0], sums[1]);
    count = 1;
  }
#pragma GCC unroll 16
  for (int i = 0; i < count; ++i) _mm512_store_ps(scores + i * 16, sums[i]);
}

// What a product prefetches: while it computes on an octet it asks for others in the order in which
// they will be read, as many bytes of numbers as it reads itself. The processor drops prefetches
// while too many reads are under way, so each line is asked for twice: `far` octets ahead and again
// `near` octets ahead. Products take a template argument kStride: each so many steps one prefetches
// (1, or more where stored codes are shorter than numbers); 0: none.
struct Ahead {
  const std::byte* const* octets = nullptr;  // Those of the tile and behind; null: nothing.
  int64_t near = 0;
  int64_t far = 0;
};

// Where a product's next prefetches go.
struct AheadLines {
  const std::byte* near = nullptr;
  const std::byte* far = nullptr;

  // Those that computing on octet `octet` of the tile asks for.
  static AheadLines Of(const Ahead& ahead, int64_t octet) {
    return {ahead.octets[octet + ahead.near], ahead.octets[octet + ahead.far]};
  }
  __attribute__((always_inline)) void Fetch(int line) const {
    Prefetch(far + line * kLineBytes);
    Prefetch(near + line * kLineBytes);
  }
  void Advance(int64_t lines) {
    near += lines * kLineBytes;
    far += lines * kLineBytes;
  }
};

// One step of sixteen tokens, a piece of each row, and between them the prefetches of as many lines
// as the pieces have.
template <int R, bool kPrefetches>
__attribute__((always_inline)) inline void DotStep(const std::byte* key0, const std::byte* key1,
                                                   int64_t row_bytes, __m512i query,
                                                   AheadLines* lines, __m512* sums) {
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    const std::byte* const row = (i < 8 ? key0 : key1) + (i % 8) * row_bytes;
    sums[i] = DotPairs(sums[i], Repeat<R>(row), query);
    if (kPrefetches && i % R == 0) lines->Fetch(i / R);
  }
  if (kPrefetches) lines->Advance(16 / R);
}

struct KeyArguments {
  const Octets* keys;
  Ahead ahead;
  uint32_t octets;
  int64_t row_bytes;
  int passes;  // 2 where queries are the sum of two bfloat16 numbers, packed one after the other.
  const std::byte* queries;
  float* scores;
};

// Scores of a tile's tokens for the block's rows. kRowBytes is that of keys, or 0: any.
template <int R, int kRowBytes, int kStride>
void KeysByQueries(const KeyArguments& in) {
  constexpr int kStepBytes = kLineBytes / R;
  const int64_t row_bytes = kRowBytes == 0 ? in.row_bytes : kRowBytes;
  const int64_t steps = row_bytes / kStepBytes;
  for (uint32_t o = 0; o < in.octets; o += 2) {
    __m512 sums[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) sums[i] = _mm512_setzero_ps();
    for (int pass = 0; pass < in.passes; ++pass) {
      const std::byte* query = in.queries + pass * steps * kLineBytes;
      const std::byte* key0 = (*in.keys)[o];
      const std::byte* key1 = (*in.keys)[o + 1];
      for (int half = 0; half < 2; ++half) {
        AheadLines lines;
        if (kStride > 0) lines = AheadLines::Of(in.ahead, o + half);
        for (int64_t step = 0; step < steps / 2; ++step) {
          const __m512i q = _mm512_load_si512(query);
          if (kStride == 1 || (kStride > 1 && step % std::max(kStride, 1) == 0)) {
            DotStep<R, true>(key0, key1, row_bytes, q, &lines, sums);
          } else {
            DotStep<R, false>(key0, key1, row_bytes, q, &lines, sums);
          }
          query += kLineBytes;
          key0 += kStepBytes;
          key1 += kStepBytes;
        }
      }
    }
    StoreScores<R>(sums, in.scores + o * 8 * R);
  }
}

// Where Weights (avx512_softmax.h) left the dword of an octet's token pair.
template <int R>
constexpr int WeightIndex(int pair, int row) {
  if (R == 16) return pair * 16 + row;
  constexpr int kPairs = R >= 8 ? 1 : 8 / R;  // Of a row in one vector.
  return pair / kPairs * 8 + row * kPairs + pair % kPairs;
}

struct ValueArguments {
  const Octets* values;
  Ahead ahead;
  uint32_t octets;
  uint32_t span;  // Octets at once: each span is read once for each kColumns columns, so one that
                  // comes from memory should be as short as what is prefetched near.
  int64_t row_bytes;
  const uint32_t* weights;
  int64_t columns;
  float* output;
};

// One octet's share of AddOctets.
template <int R, int kFirst, int kRows, int kColumns, int kStride>
__attribute__((always_inline)) inline void AddOctet(const std::byte* row, int64_t row_bytes,
                                                    const uint32_t* weights, AheadLines* lines,
                                                    __m512 (*sums)[2 * kColumns]) {
#pragma GCC unroll 4
  for (int pair = 0; pair < 4; ++pair, row += 2 * row_bytes) {
    const bool prefetches = kStride > 0 && pair % std::max(kStride, 1) == 0;
#pragma GCC unroll 4
    for (int c = 0; c < kColumns; ++c) {
      const __m512i even = _mm512_loadu_si512(row + c * kLineBytes);
      const __m512i odd = _mm512_loadu_si512(row + row_bytes + c * kLineBytes);
      const __m512i low = _mm512_unpacklo_epi16(even, odd);
      const __m512i high = _mm512_unpackhi_epi16(even, odd);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m512i weight = Repeat<16>(weights + WeightIndex<R>(pair, kFirst + r));
        sums[r][2 * c] = DotPairs(sums[r][2 * c], low, weight);
        if (prefetches && r == 0) lines->Fetch(0);
        sums[r][2 * c + 1] = DotPairs(sums[r][2 * c + 1], high, weight);
        if (prefetches && r == kRows / 2) lines->Fetch(1);
      }
      if (prefetches) lines->Advance(2);
    }
  }
}

// output = output * shrink + weights by values, for rows [kFirst, kFirst + kRows) of R and octets
// [begin, begin + span): 32 columns are two vectors, as unpacking orders them; kColumns times 32
// are done at once. Prefetches in the order of octets, `passes` pieces of each.
template <int R, int kFirst, int kRows, int kColumns, int kRowBytes, int kStride>
void AddOctets(const ValueArguments& in, uint32_t begin, const float* shrink) {
  const int64_t row_bytes = kRowBytes == 0 ? in.row_bytes : kRowBytes;
  const int64_t columns = kRowBytes == 0 ? in.columns : kRowBytes / 2;
  const int64_t passes = columns / (32 * kColumns);
  const uint32_t end = begin + in.span;
  AheadLines lines;
  if (kStride > 0) lines = AheadLines::Of(in.ahead, begin);
  int64_t ahead_octet = begin, pieces_left = passes;
  float* output = in.output + kFirst * columns;
  for (int64_t pass = 0; pass < passes; ++pass, output += 32 * kColumns) {
    __m512 sums[kRows][2 * kColumns];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512 factor = _mm512_set1_ps(shrink[(kFirst + r) * (16 / R)]);
#pragma GCC unroll 8
      for (int c = 0; c < 2 * kColumns; ++c) {
        sums[r][c] = _mm512_mul_ps(_mm512_load_ps(output + r * columns + 16 * c), factor);
      }
    }
    const uint32_t* weights = in.weights + begin * 4 * R;
    for (uint32_t o = begin; o < end; ++o, weights += 4 * R) {
      const std::byte* const row = (*in.values)[o] + pass * kColumns * kLineBytes;
      AddOctet<R, kFirst, kRows, kColumns, kStride>(row, row_bytes, weights, &lines, sums);
      if (kStride > 0 && --pieces_left == 0) {
        pieces_left = passes;
        lines = AheadLines::Of(in.ahead, ++ahead_octet);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int c = 0; c < 2 * kColumns; ++c) {
        _mm512_store_ps(output + r * columns + 16 * c, sums[r][c]);
      }
    }
  }
}

// The same for all octets; the first sixteen rows' second half does not prefetch again. kRowBytes
// is that of values and of twice as many columns, or 0: any.
template <int R, int kColumns, int kRowBytes, int kStride>
void WeightsByValues(const ValueArguments& in, const float* shrink) {
  constexpr int kRows = std::min(R, 8);
  alignas(64) float kept[kBlockRows];
  _mm512_store_ps(kept, _mm512_set1_ps(1.0f));
  for (uint32_t o = 0; o < in.octets; o += in.span, shrink = kept) {
    AddOctets<R, 0, kRows, kColumns, kRowBytes, kStride>(in, o, shrink);
    if constexpr (R == 16) AddOctets<R, 8, kRows, kColumns, kRowBytes, 0>(in, o, shrink);
  }
}

}  // namespace cairn::kernels::avx512
CAIRN_AVX512_END
