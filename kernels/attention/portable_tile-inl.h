// The portable TileOps of one target. Included once for each target.
#if defined(CAIRN_PORTABLE_TILE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CAIRN_PORTABLE_TILE_INL
#undef CAIRN_PORTABLE_TILE_INL
#else
#define CAIRN_PORTABLE_TILE_INL
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/attention/portable_products-inl.h"
#include "kernels/attention/tile_ops.h"
#include "kernels/kv_segment.h"

HWY_BEFORE_NAMESPACE();
namespace cairn::kernels::HWY_NAMESPACE {

inline constexpr uint64_t kLineBytes = 64;

// Rows that float32 tiles have as they should be need no staging.
inline bool IsStaged(const TileGeometry& geometry) {
  return geometry.dtype != KvDtype::kFloat32 || geometry.key_dim != PaddedDim(geometry.key_dim) ||
         geometry.value_dim != PaddedDim(geometry.value_dim);
}

inline uint32_t RowsAtOnce(const RowBlock& block) { return block.rows >= 3 ? 4 : block.rows; }

inline float* StagedKeys(std::byte* scratch) { return reinterpret_cast<float*>(scratch); }

inline float* StagedValues(const TileGeometry& geometry, std::byte* scratch) {
  return StagedKeys(scratch) + uint64_t{kTileTokens} * PaddedDim(geometry.key_dim);
}

inline bool Does(const TileGeometry&) { return true; }

inline uint32_t OctetsOfTile(const TileGeometry&) { return kTileOctets; }

inline void Pack(const TileGeometry& geometry, RowBlock* block) {
  const uint32_t padded = PaddedDim(geometry.key_dim);
  float* const queries = reinterpret_cast<float*>(block->queries);
  std::fill_n(queries, uint64_t{PaddedRows(block->rows)} * padded, 0.0f);
  for (uint32_t row = 0; row < block->rows; ++row) {
    DecodeRow(geometry.query_dtype, static_cast<const std::byte*>(block->query_rows[row]),
              geometry.key_dim, queries + uint64_t{row} * padded);
  }
}

inline void Begin(const TileGeometry& geometry, RowBlock* block) {
  std::fill_n(block->max, kBlockRows, -INFINITY);
  std::fill_n(block->sum, kBlockRows, 0.0f);
  std::fill_n(block->output, OutputBytes(geometry, block->rows) / sizeof(float), 0.0f);
}

// Decodes the tile's octets of `dim` columns, prefetching as much of what comes next.
inline void Stage(const TileGeometry& geometry, const Tile& tile, const Octets& octets,
                  uint32_t dim, float* out) {
  const uint64_t row_bytes = RowBytes(geometry.dtype, dim);
  const uint32_t padded = PaddedDim(dim);
  for (uint32_t o = 0; o < tile.octets; ++o) {
    for (uint32_t t = 0; t < kOctetTokens; ++t, out += padded) {
      for (uint64_t i = 0; tile.has_ahead && i < row_bytes; i += kLineBytes) {
        hwy::Prefetch(tile.ahead[o] + t * row_bytes + i);
      }
      DecodeRow(geometry.dtype, octets[o] + t * row_bytes, dim, out);
      std::fill(out + dim, out + padded, 0.0f);
    }
  }
}

inline Rows RowsOf(const Octets& octets, const float* staged, uint32_t padded_dim) {
  Rows rows;
  rows.stride = padded_dim;
  for (uint32_t o = 0; o < kTileOctets; ++o) {
    rows.octets[o] = staged == nullptr ? reinterpret_cast<const float*>(octets[o])
                                       : staged + o * kOctetTokens * padded_dim;
  }
  return rows;
}

inline void Score(const TileGeometry& geometry, const Tile& tile, std::byte* scratch,
                  RowBlock* block) {
  const uint32_t dim = PaddedDim(geometry.key_dim);
  float* const staged = IsStaged(geometry) ? StagedKeys(scratch) : nullptr;
  if (staged != nullptr && block->is_first) {
    Stage(geometry, tile, tile.keys, geometry.key_dim, staged);
  }
  const Rows keys = RowsOf(tile.keys, staged, dim);
  const uint32_t at_once = RowsAtOnce(*block);
  for (uint32_t row = 0; row < block->rows; row += at_once) {
    const float* queries = reinterpret_cast<const float*>(block->queries) + uint64_t{row} * dim;
    float* const scores = block->scores + row * kTileTokens;
    if (at_once == 4) {
      KeysByQueries<4>(keys, tile.octets, dim, queries, scores);
    } else if (at_once == 2) {
      KeysByQueries<2>(keys, tile.octets, dim, queries, scores);
    } else {
      KeysByQueries<1>(keys, tile.octets, dim, queries, scores);
    }
  }
}

inline void Add(const TileGeometry& geometry, const Tile& tile, std::byte* scratch,
                RowBlock* block) {
  const uint32_t dim = PaddedDim(geometry.value_dim);
  const bool is_staged = IsStaged(geometry);
  float* staged = is_staged ? StagedValues(geometry, scratch) : nullptr;
  if (is_staged && block->is_first && !geometry.values_in_keys) {
    Stage(geometry, tile, tile.values, geometry.value_dim, staged);
  }
  if (is_staged && geometry.values_in_keys) staged = StagedKeys(scratch);
  const Rows values = RowsOf(geometry.values_in_keys ? tile.keys : tile.values, staged,
                             geometry.values_in_keys ? PaddedDim(geometry.key_dim) : dim);
  const uint32_t at_once = RowsAtOnce(*block);
  for (uint32_t row = 0; row < block->rows; row += at_once) {
    float shrink[4] = {};
    float* const scores = block->scores + row * kTileTokens;
    for (uint32_t r = 0; r < at_once; ++r) {
      // Rows that only fill up have no weight.
      std::fill_n(scores + r * kTileTokens, row + r < block->rows ? 0 : kTileTokens, 0.0f);
      if (row + r < block->rows) {
        shrink[r] = SoftmaxRow(geometry, tile, row + r, block, scores + r * kTileTokens);
      }
    }
    float* const output = block->output + uint64_t{row} * dim;
    if (at_once == 4) {
      WeightsByValues<4>(values, tile.octets, dim, scores, shrink, output);
    } else if (at_once == 2) {
      WeightsByValues<2>(values, tile.octets, dim, scores, shrink, output);
    } else {
      WeightsByValues<1>(values, tile.octets, dim, scores, shrink, output);
    }
  }
}

inline void Finish(const TileGeometry& geometry, const RowBlock& block, uint32_t row, float* output,
                   float* log_sum_exp) {
  const float sum = block.sum[row];
  const bool is_empty = sum == 0;
  const float factor = is_empty ? 0.0f : 1.0f / sum;
  const float* from = block.output + uint64_t{row} * PaddedDim(geometry.value_dim);
  for (uint32_t d = 0; d < geometry.value_dim; ++d) output[d] = from[d] * factor;
  *log_sum_exp = is_empty ? -INFINITY : block.max[row] * 0.693147181f + std::log(sum);
}

inline constexpr TileOps kOps = {
    HWY_STR(HWY_NAMESPACE), Does, OctetsOfTile, Pack, Begin, Score, Add, Finish};

}  // namespace cairn::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // CAIRN_PORTABLE_TILE_INL
