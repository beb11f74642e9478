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

// What a product prefetches: octets in order, as many bytes of numbers as it reads itself. Codes
// are shorter than numbers, so only each `stride`-th of its steps (a power of two) prefetches.
struct Ahead {
  const std::byte* const* next = nullptr;  // Null: nothing.
  const std::byte* const* beyond = nullptr;
  int64_t stride = 1;
};

// Where a product's next prefetches go. The processor drops prefetches while too many reads are
// under way, so each line is asked for again: two units ahead of its use, one unit ahead, and there
// once more where the product has time for it.
struct AheadLines {
  const std::byte* next = nullptr;  // Null: nothing.
  const std::byte* beyond = nullptr;

  template <int R>
  __attribute__((always_inline)) void Fetch(int line) const {
    Prefetch(beyond + line * kLineBytes);
    Prefetch(next + line * kLineBytes);
    if constexpr (R <= 4) Prefetch(next + line * kLineBytes);
  }
  void Advance(int lines) {
    next += lines * kLineBytes;
    beyond += lines * kLineBytes;
  }
};

// One octet's rows, and between them the prefetches of kLines lines; odd multiples of the stride
// are kept, x86 scales them by two and four.
template <int R, int kLines>
inline void DotOctet(const std::byte* key, int64_t stride, __m512i query, const AheadLines& ahead,
                     int line, __m512* sums) {
  const int64_t stride3 = 3 * stride;
  const std::byte* const rows[8] = {key,
                                    key + stride,
                                    key + 2 * stride,
                                    key + stride3,
                                    key + 4 * stride,
                                    key + 5 * stride,
                                    key + 2 * stride3,
                                    key + 7 * stride};
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    sums[i] = DotPairs(sums[i], Repeat<R>(rows[i]), query);
    if (i < kLines) ahead.Fetch<R>(line + i);
  }
}

// One step of sixteen tokens: a piece of each row.
template <int R, int kLines>
inline void DotStep(const std::byte* key0, const std::byte* key1, int64_t stride, __m512i query,
                    const AheadLines& ahead, __m512* sums) {
  constexpr int kFirst = (kLines + 1) / 2;
  DotOctet<R, kFirst>(key0, stride, query, ahead, 0, sums);
  DotOctet<R, kLines - kFirst>(key1, stride, query, ahead, kFirst, sums + 8);
}

// Scores of a tile's tokens for the block's rows. `passes` is 2 where queries are the sum of two
// bfloat16 numbers, packed one after the other.
template <int R>
void KeysByQueries(const Octets& keys, const Ahead& ahead, uint32_t octets, int64_t row_bytes,
                   int passes, const std::byte* queries, float* scores) {
  constexpr int kStepBytes = kLineBytes / R;
  constexpr int kStepLines = 16 / R;
  const int64_t steps = row_bytes / kStepBytes;
  for (uint32_t o = 0; o < octets; o += 2) {
    __m512 sums[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) sums[i] = _mm512_setzero_ps();
    for (int pass = 0; pass < passes; ++pass) {
      const std::byte* query = queries + pass * steps * kLineBytes;
      const std::byte* key0 = keys[o];
      const std::byte* key1 = keys[o + 1];
      const bool prefetches = ahead.next != nullptr && pass == 0;
      for (int half = 0; half < 2; ++half) {
        AheadLines lines;
        if (prefetches) lines = {ahead.next[o + half], ahead.beyond[o + half]};
        for (int64_t step = 0; step < steps / 2; ++step) {
          const __m512i q = _mm512_load_si512(query);
          if (prefetches && (step & (ahead.stride - 1)) == 0) {
            DotStep<R, kStepLines>(key0, key1, row_bytes, q, lines, sums);
            lines.Advance(kStepLines);
          } else {
            DotStep<R, 0>(key0, key1, row_bytes, q, lines, sums);
          }
          query += kLineBytes;
          key0 += kStepBytes;
          key1 += kStepBytes;
        }
      }
    }
    StoreScores<R>(sums, scores + o * 8 * R);
  }
}

using KeysByQueriesFunction = void (*)(const Octets& keys, const Ahead& ahead, uint32_t octets,
                                       int64_t row_bytes, int passes, const std::byte* queries,
                                       float* scores);

inline KeysByQueriesFunction KeysByQueriesOf(uint32_t padded_rows) {
  switch (padded_rows) {
    case 1:
      return KeysByQueries<1>;
    case 2:
      return KeysByQueries<2>;
    case 4:
      return KeysByQueries<4>;
    case 8:
      return KeysByQueries<8>;
    default:
      return KeysByQueries<16>;
  }
}

// Where Weights (avx512_softmax.h) left the dword of an octet's token pair.
template <int R>
constexpr int WeightIndex(int pair, int row) {
  if (R == 16) return pair * 16 + row;
  constexpr int kPairs = R >= 8 ? 1 : 8 / R;  // Of a row in one vector.
  return pair / kPairs * 8 + row * kPairs + pair % kPairs;
}

// One octet's share of WeightsByValues.
template <int R, int kFirst, int kRows, int kColumns>
inline void AddOctet(const std::byte* row, int64_t row_bytes, const uint32_t* weights,
                     AheadLines ahead, int64_t stride, __m512 (*sums)[2 * kColumns]) {
#pragma GCC unroll 4
  for (int pair = 0; pair < 4; ++pair, row += 2 * row_bytes) {
    const bool prefetches = ahead.next != nullptr && (pair & (stride - 1)) == 0;
#pragma GCC unroll 4
    for (int c = 0; c < kColumns; ++c) {
      if (prefetches) {
        ahead.Fetch<R>(0);
        ahead.Fetch<R>(1);
        ahead.Advance(2);
      }
      const __m512i even = _mm512_loadu_si512(row + c * kLineBytes);
      const __m512i odd = _mm512_loadu_si512(row + row_bytes + c * kLineBytes);
      const __m512i low = _mm512_unpacklo_epi16(even, odd);
      const __m512i high = _mm512_unpackhi_epi16(even, odd);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m512i weight = Repeat<16>(weights + WeightIndex<R>(pair, kFirst + r));
        sums[r][2 * c] = DotPairs(sums[r][2 * c], low, weight);
        sums[r][2 * c + 1] = DotPairs(sums[r][2 * c + 1], high, weight);
      }
    }
  }
}

// output = output * shrink + weights by values, for rows [kFirst, kFirst + kRows) of R: 32 columns
// are two vectors, as unpacking orders them; kColumns times 32 are done at once.
template <int R, int kFirst, int kRows, int kColumns>
void WeightsByValues(const Octets& values, const Ahead& ahead, uint32_t octets, int64_t row_bytes,
                     const uint32_t* weights, const float* shrink, float* output, int64_t columns) {
  const int64_t passes = columns / (32 * kColumns);
  // A pass's octet is one of `passes` pieces of an octet ahead.
  const int64_t piece_bytes = (8 / ahead.stride) * kColumns * kLineBytes;
  int64_t ahead_octet = 0, ahead_piece = 0, ahead_bytes = 0;
  for (int64_t pass = 0; pass < passes; ++pass, output += 32 * kColumns) {
    __m512 sums[kRows][2 * kColumns];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512 factor = _mm512_set1_ps(shrink[(kFirst + r) * (16 / R)]);
#pragma GCC unroll 8
      for (int c = 0; c < 2 * kColumns; ++c) {
        const float* from = output + (kFirst + r) * columns + 16 * c;
        sums[r][c] = _mm512_mul_ps(_mm512_load_ps(from), factor);
      }
    }
    for (uint32_t o = 0; o < octets; ++o) {
      AheadLines lines;
      if (ahead.next != nullptr) {
        lines = {ahead.next[ahead_octet] + ahead_bytes, ahead.beyond[ahead_octet] + ahead_bytes};
        ahead_bytes += piece_bytes;
        if (++ahead_piece == passes) {
          ahead_piece = ahead_bytes = 0;
          ++ahead_octet;
        }
      }
      AddOctet<R, kFirst, kRows, kColumns>(values[o] + pass * kColumns * kLineBytes, row_bytes,
                                           weights + o * 4 * R, lines, ahead.stride, sums);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int c = 0; c < 2 * kColumns; ++c) {
        _mm512_store_ps(output + (kFirst + r) * columns + 16 * c, sums[r][c]);
      }
    }
  }
}

}  // namespace cairn::kernels::avx512
CAIRN_AVX512_END
