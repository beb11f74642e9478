// The online softmax of avx512_tile.cc: scores of a tile to weights as bfloat16 pairs.
//
// R is how many rows share a vector; lane r * (16 / R) + t is row r, token t of the 16 / R tokens
// that the vector covers. Weights are dwords of two tokens (even in the low half): at vector * 8 +
// lane / 2, except with R = 16, where a vector has one token: at (token / 2) * 16 + row.
#pragma once

#include <immintrin.h>

#include <cmath>
#include <cstdint>

#include "kernels/attention/avx512_target.h"
#include "kernels/attention/tile_ops.h"

CAIRN_AVX512_BEGIN
namespace cairn::kernels::avx512 {

inline constexpr float kLog2E = 1.44269504f;
inline constexpr float kLn2 = 0.693147181f;

// 64 / R bytes at `from`, R times over.
template <int R>
inline __m512i Repeat(const void* from) {
  const char* bytes = static_cast<const char*>(from);
  if constexpr (R == 1) return _mm512_loadu_si512(bytes);
  if constexpr (R == 2) {
    return _mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes)));
  }
  if constexpr (R == 4) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)));
  }
  if constexpr (R == 8) {
    return _mm512_broadcastq_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes)));
  }
  int32_t dword;
  __builtin_memcpy(&dword, bytes, sizeof(dword));
  return _mm512_set1_epi32(dword);
}

// 2^x for x up to about 0, minus infinity included; relative error about 1e-7. A NaN stays one.
inline __m512 Exp2(__m512 x) {
  constexpr int kPartAboveFloor = 0x09;           // Of VREDUCEPS: x - floor(x), without exceptions.
  x = _mm512_max_ps(_mm512_set1_ps(-200.0f), x);  // Of two operands the second wins if NaN.
  const __m512 part = _mm512_reduce_ps(x, kPartAboveFloor);
  __m512 p = _mm512_set1_ps(1.867169445e-3f);
  p = _mm512_fmadd_ps(p, part, _mm512_set1_ps(9.016946598e-3f));
  p = _mm512_fmadd_ps(p, part, _mm512_set1_ps(5.579997341e-2f));
  p = _mm512_fmadd_ps(p, part, _mm512_set1_ps(2.401644334e-1f));
  p = _mm512_fmadd_ps(p, part, _mm512_set1_ps(6.931513132e-1f));
  p = _mm512_fmadd_ps(p, part, _mm512_set1_ps(1.0f));
  return _mm512_scalef_ps(p, x);  // Times two to the floor of x.
}

// The same to 2.9e-6, exact for 0: enough for weights that are rounded to bfloat16, and their sums.
inline __m512 WeightOf(__m512 x) {
  constexpr int kPartAboveFloor = 0x09;
  const __m512 part = _mm512_reduce_ps(x, kPartAboveFloor);  // Of minus infinity: 0.
  __m512 p = _mm512_set1_ps(1.342668429e-2f);
  p = _mm512_fmadd_ps(p, part, _mm512_set1_ps(5.224247419e-2f));
  p = _mm512_fmadd_ps(p, part, _mm512_set1_ps(2.412802048e-1f));
  p = _mm512_fmadd_ps(p, part, _mm512_set1_ps(6.930448449e-1f));
  p = _mm512_fmadd_ps(p, part, _mm512_set1_ps(1.0f));
  return _mm512_scalef_ps(p, x);
}

// cap * tanh(x / cap)
inline __m512 SoftCap(__m512 x, float cap) {
  const __m512 y = _mm512_mul_ps(x, _mm512_set1_ps(-2.0f * kLog2E / cap));
  const __m512 sign = _mm512_castsi512_ps(_mm512_set1_epi32(INT32_MIN));
  const __m512 e = Exp2(_mm512_or_ps(y, sign));
  const __m512 one = _mm512_set1_ps(1.0f);
  const __m512 t = _mm512_div_ps(_mm512_sub_ps(one, e), _mm512_add_ps(one, e));
  const __m512 signed_t = _mm512_or_ps(t, _mm512_and_ps(x, sign));
  return _mm512_mul_ps(signed_t, _mm512_set1_ps(cap));
}

// The most of each row, in all of its lanes.
template <int R>
inline __m512 MaxOfRows(__m512 x) {
  if constexpr (R <= 8) x = _mm512_max_ps(x, _mm512_permute_ps(x, 0xb1));
  if constexpr (R <= 4) x = _mm512_max_ps(x, _mm512_permute_ps(x, 0x4e));
  if constexpr (R <= 2) x = _mm512_max_ps(x, _mm512_shuffle_f32x4(x, x, 0xb1));
  if constexpr (R <= 1) x = _mm512_max_ps(x, _mm512_shuffle_f32x4(x, x, 0x4e));
  return x;
}

// Which lanes of vector `k` are seen.
template <int R>
inline __mmask16 VisibleLanes(const RowBlock& block, uint32_t k) {
  constexpr uint32_t kTokens = 16 / R;
  constexpr uint64_t kMask = (uint64_t{1} << kTokens) - 1;
  uint32_t lanes = 0;
  for (uint32_t r = 0; r < block.rows; ++r) {
    const uint64_t tokens = (block.visible[r] >> (k * kTokens)) & kMask;
    lanes |= static_cast<uint32_t>(tokens << (r * kTokens));
  }
  return static_cast<__mmask16>(lanes);
}

// Dot products to logits in units of ln 2, minus infinity where nothing is seen; returns the most
// of each row.
template <int R>
__m512 Logits(const TileGeometry& geometry, const Tile& tile, const RowBlock& block,
              float* scores) {
  const bool capped = geometry.soft_cap > 0;
  const __m512 scale = _mm512_set1_ps(geometry.softmax_scale * (capped ? 1.0f : kLog2E));
  const __m512 nothing = _mm512_set1_ps(-INFINITY);
  __m512 most = nothing;
  const uint32_t vectors = tile.octets * R / 2;
  for (uint32_t k = 0; k < vectors; ++k) {
    __m512 x = _mm512_mul_ps(_mm512_load_ps(scores + k * 16), scale);
    if (geometry.scaled) {
      const float* scales = tile.key_scales + k * (16 / R);
      x = _mm512_mul_ps(x, _mm512_castsi512_ps(Repeat<R>(scales)));
    }
    if (capped) x = _mm512_mul_ps(SoftCap(x, geometry.soft_cap), _mm512_set1_ps(kLog2E));
    if (!tile.all_visible) x = _mm512_mask_mov_ps(nothing, VisibleLanes<R>(block, k), x);
    _mm512_store_ps(scores + k * 16, x);
    most = _mm512_max_ps(most, x);
  }
  return MaxOfRows<R>(most);
}

// Whether logits are dot products times a constant that keeps their order.
inline bool IsPlain(const TileGeometry& geometry, const Tile& tile) {
  return tile.all_visible && !geometry.scaled && geometry.soft_cap == 0 &&
         geometry.softmax_scale >= 0;
}

// The most of each row's dot products.
template <int R>
__m512 MostOfScores(const Tile& tile, const float* scores) {
  const uint32_t vectors = tile.octets * R / 2;
  __m512 even = _mm512_load_ps(scores), odd = _mm512_load_ps(scores + 16);
  for (uint32_t k = 2; k < vectors; k += 2) {
    even = _mm512_max_ps(even, _mm512_load_ps(scores + k * 16));
    odd = _mm512_max_ps(odd, _mm512_load_ps(scores + k * 16 + 16));
  }
  return MaxOfRows<R>(_mm512_max_ps(even, odd));
}

// 2^(score * factor - most), summed and rounded to weights; with scales a weight takes its value's.
template <int R>
void Weights(const TileGeometry& geometry, const Tile& tile, const float* scores, __m512 factor,
             __m512 most, __m512* sum, uint32_t* weights) {
  const uint32_t vectors = tile.octets * R / 2;
  const __m512i interleave =
      _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                       21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  for (uint32_t k = 0; k < vectors; k += 2) {
    __m512 p0 = WeightOf(_mm512_fmsub_ps(_mm512_load_ps(scores + k * 16), factor, most));
    __m512 p1 = WeightOf(_mm512_fmsub_ps(_mm512_load_ps(scores + k * 16 + 16), factor, most));
    *sum = _mm512_add_ps(*sum, _mm512_add_ps(p0, p1));
    if (geometry.scaled) {
      const float* scales = tile.value_scales + k * (16 / R);
      p0 = _mm512_mul_ps(p0, _mm512_castsi512_ps(Repeat<R>(scales)));
      p1 = _mm512_mul_ps(p1, _mm512_castsi512_ps(Repeat<R>(scales + 16 / R)));
    }
    __m512i pairs = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(p1, p0));
    if constexpr (R == 16) pairs = _mm512_permutexvar_epi16(interleave, pairs);
    _mm512_store_si512(weights + k * 8, pairs);
  }
}

// Scores to weights; updates the block's maxima and sums and returns by what its output shrinks.
template <int R>
__m512 Softmax(const TileGeometry& geometry, const Tile& tile, float* scores, uint32_t* weights,
               RowBlock* block) {
  const __m512 old_most = _mm512_load_ps(block->max);
  const bool is_plain = IsPlain(geometry, tile);
  const __m512 factor = _mm512_set1_ps(is_plain ? geometry.softmax_scale * kLog2E : 1.0f);
  const __m512 seen_most = is_plain ? _mm512_mul_ps(MostOfScores<R>(tile, scores), factor)
                                    : Logits<R>(geometry, tile, *block, scores);
  const __m512 most = _mm512_max_ps(old_most, seen_most);
  // A row that saw nothing yet has no finite maximum to subtract.
  const __mmask16 none = _mm512_cmp_ps_mask(most, _mm512_set1_ps(-INFINITY), _CMP_EQ_OQ);
  const __m512 base = _mm512_mask_mov_ps(most, none, _mm512_setzero_ps());
  const __m512 shrink = Exp2(_mm512_sub_ps(old_most, base));
  __m512 sum = _mm512_mul_ps(_mm512_load_ps(block->sum), shrink);
  Weights<R>(geometry, tile, scores, factor, base, &sum, weights);
  _mm512_store_ps(block->max, most);
  _mm512_store_ps(block->sum, sum);
  return shrink;
}

}  // namespace cairn::kernels::avx512
CAIRN_AVX512_END
