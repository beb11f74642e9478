// The products and the softmax of the portable ops, in float32. Included once for each target.
//
// Scores and weights are [row][kTileTokens]; rows are padded to kRows, which share each load.
#if defined(CAIRN_PORTABLE_PRODUCTS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CAIRN_PORTABLE_PRODUCTS_INL
#undef CAIRN_PORTABLE_PRODUCTS_INL
#else
#define CAIRN_PORTABLE_PRODUCTS_INL
#endif

#include <hwy/highway.h>

#include <cmath>
#include <cstdint>

#include "kernels/attention/portable_decode-inl.h"
#include "kernels/attention/tile_ops.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::HWY_NAMESPACE {

// Rows of float32, octet by octet.
struct Rows {
  const float* octets[kTileOctets];
  uint64_t stride;  // Elements.
};

// 2^x for x <= 0, minus infinity included; relative error about 2e-7, 0 below 2^-126.
inline Vector Exp2(Vector x) {
  const Floats d;
  const Ints di;
  const auto clamped = hn::Max(x, hn::Set(d, -126.0f));
  const auto whole = hn::Round(clamped);
  const auto part = hn::Sub(clamped, whole);
  auto p = hn::Set(d, 1.535336188e-4f);
  p = hn::MulAdd(p, part, hn::Set(d, 1.339887440e-3f));
  p = hn::MulAdd(p, part, hn::Set(d, 9.618437357e-3f));
  p = hn::MulAdd(p, part, hn::Set(d, 5.550332471e-2f));
  p = hn::MulAdd(p, part, hn::Set(d, 2.402264791e-1f));
  p = hn::MulAdd(p, part, hn::Set(d, 6.931472028e-1f));
  p = hn::MulAdd(p, part, hn::Set(d, 1.0f));
  const auto exponent = hn::Add(hn::ConvertTo(di, whole), hn::Set(di, 127));
  const auto power = hn::Mul(p, hn::BitCast(d, hn::ShiftLeft<23>(exponent)));
  const auto kept = hn::IfThenElseZero(hn::Gt(x, hn::Set(d, -126.0f)), power);
  return hn::IfThenElse(hn::IsNaN(x), x, kept);
}

// cap * tanh(x / cap)
inline Vector SoftCap(Vector x, float cap) {
  const Floats d;
  const auto e = Exp2(hn::Mul(hn::Abs(x), hn::Set(d, -2.0f * 1.44269504f / cap)));
  const auto one = hn::Set(d, 1.0f);
  const auto t = hn::Div(hn::Sub(one, e), hn::Add(one, e));
  return hn::Mul(hn::CopySignToAbs(t, x), hn::Set(d, cap));
}

// scores[row][token] for kRows rows and kTokens tokens of one octet from `token` on.
template <int kRows, int kTokens>
void DotTokens(const float* queries, uint64_t query_stride, const float* keys, uint64_t key_stride,
               uint32_t dim, float* scores) {
  const Floats d;
  Vector sums[kRows][kTokens];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) sums[r][t] = hn::Zero(d);
  }
  for (uint32_t i = 0; i < dim; i += static_cast<uint32_t>(hn::Lanes(d))) {
    Vector key[kTokens];
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) {
      key[t] = hn::LoadU(d, keys + static_cast<uint64_t>(t) * key_stride + i);
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const Vector query = hn::Load(d, queries + static_cast<uint64_t>(r) * query_stride + i);
#pragma GCC unroll 8
      for (int t = 0; t < kTokens; ++t) sums[r][t] = hn::MulAdd(query, key[t], sums[r][t]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) {
      scores[r * static_cast<int>(kTileTokens) + t] = hn::GetLane(hn::SumOfLanes(d, sums[r][t]));
    }
  }
}

template <int kRows>
void KeysByQueries(const Rows& keys, uint32_t octets, uint32_t dim, const float* queries,
                   float* scores) {
  constexpr int kTokens = kRows == 4 ? 2 : (kRows == 2 ? 4 : 8);
  for (uint32_t o = 0; o < octets; ++o) {
    for (uint32_t t = 0; t < kOctetTokens; t += kTokens) {
      DotTokens<kRows, kTokens>(queries, dim, keys.octets[o] + t * keys.stride, keys.stride, dim,
                                scores + o * kOctetTokens + t);
    }
  }
}

// Dot products of one row to logits in units of ln 2, minus infinity where nothing is seen; returns
// the most of them.
inline float Logits(const TileGeometry& geometry, const Tile& tile, uint64_t visible,
                    float* scores) {
  constexpr float kLog2E = 1.44269504f;
  const Floats d;
  const bool capped = geometry.soft_cap > 0;
  const auto scale = hn::Set(d, geometry.softmax_scale * (capped ? 1.0f : kLog2E));
  const uint32_t tokens = tile.octets * kOctetTokens;
  auto most = hn::Set(d, -INFINITY);
  for (uint32_t t = 0; t < tokens; t += static_cast<uint32_t>(hn::Lanes(d))) {
    auto x = hn::Mul(hn::LoadU(d, scores + t), scale);
    if (geometry.scaled) x = hn::Mul(x, hn::LoadU(d, tile.key_scales + t));
    if (capped) x = hn::Mul(SoftCap(x, geometry.soft_cap), hn::Set(d, kLog2E));
    hn::StoreU(x, d, scores + t);
  }
  if (!tile.all_visible) {
    for (uint32_t t = 0; t < tokens; ++t) {
      if (((visible >> t) & 1) == 0) scores[t] = -INFINITY;
    }
  }
  for (uint32_t t = 0; t < tokens; t += static_cast<uint32_t>(hn::Lanes(d))) {
    most = hn::Max(most, hn::LoadU(d, scores + t));
  }
  return hn::GetLane(hn::MaxOfLanes(d, most));
}

// One row's scores to weights, in place; returns by what its output shrinks.
inline float SoftmaxRow(const TileGeometry& geometry, const Tile& tile, uint32_t row,
                        RowBlock* block, float* scores) {
  const Floats d;
  const float seen_most = Logits(geometry, tile, block->visible[row], scores);
  const float most = seen_most > block->max[row] ? seen_most : block->max[row];
  // A row that saw nothing yet has no finite maximum to subtract.
  const float base = most == -INFINITY ? 0.0f : most;
  const float shrink = hn::GetLane(Exp2(hn::Set(d, block->max[row] - base)));
  auto sum = hn::Zero(d);
  const uint32_t tokens = tile.octets * kOctetTokens;
  for (uint32_t t = 0; t < tokens; t += static_cast<uint32_t>(hn::Lanes(d))) {
    auto p = Exp2(hn::Sub(hn::LoadU(d, scores + t), hn::Set(d, base)));
    sum = hn::Add(sum, p);
    if (geometry.scaled) p = hn::Mul(p, hn::LoadU(d, tile.value_scales + t));
    hn::StoreU(p, d, scores + t);
  }
  block->sum[row] = block->sum[row] * shrink + hn::GetLane(hn::SumOfLanes(d, sum));
  block->max[row] = most;
  return shrink;
}

// output = output * shrink + weights by values, for kRows rows and kColumns vectors of columns.
template <int kRows, int kColumns>
void WeightsByColumns(const Rows& values, uint32_t octets, uint64_t column, const float* weights,
                      const float* shrink, float* output, uint64_t output_stride) {
  const Floats d;
  const uint64_t lanes = hn::Lanes(d);
  Vector sums[kRows][kColumns];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kColumns; ++c) {
      const float* from = output + static_cast<uint64_t>(r) * output_stride + column;
      sums[r][c] =
          hn::Mul(hn::Load(d, from + static_cast<uint64_t>(c) * lanes), hn::Set(d, shrink[r]));
    }
  }
  for (uint32_t t = 0; t < octets * kOctetTokens; ++t) {
    const float* row = values.octets[t / kOctetTokens] + t % kOctetTokens * values.stride + column;
    Vector value[kColumns];
#pragma GCC unroll 8
    for (int c = 0; c < kColumns; ++c) {
      value[c] = hn::LoadU(d, row + static_cast<uint64_t>(c) * lanes);
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const auto weight = hn::Set(d, weights[static_cast<uint32_t>(r) * kTileTokens + t]);
#pragma GCC unroll 8
      for (int c = 0; c < kColumns; ++c) sums[r][c] = hn::MulAdd(weight, value[c], sums[r][c]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kColumns; ++c) {
      float* to = output + static_cast<uint64_t>(r) * output_stride + column;
      hn::Store(sums[r][c], d, to + static_cast<uint64_t>(c) * lanes);
    }
  }
}

template <int kRows>
void WeightsByValues(const Rows& values, uint32_t octets, uint32_t dim, const float* weights,
                     const float* shrink, float* output) {
  constexpr int kColumns = kRows == 4 ? 2 : 4;
  const uint64_t lanes = hn::Lanes(Floats());
  uint64_t column = 0;
  for (; column + kColumns * lanes <= dim; column += kColumns * lanes) {
    WeightsByColumns<kRows, kColumns>(values, octets, column, weights, shrink, output, dim);
  }
  for (; column < dim; column += lanes) {
    WeightsByColumns<kRows, 1>(values, octets, column, weights, shrink, output, dim);
  }
}

}  // namespace cairn::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // CAIRN_PORTABLE_PRODUCTS_INL
