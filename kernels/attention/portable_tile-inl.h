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

inline uint32_t RowsAtOnce(const RowBlock& block) {
  return block.rows >= 3 ? 4 : block.rows;
}

inline uint32_t PaddedRows(const RowBlock& block) {
  const uint32_t at_once = RowsAtOnce(block);
  return (block.rows + at_once - 1) / at_once * at_once;
}

inline float* StagedKeys(std::byte* scratch) { return reinterpret_cast<float*>(scratch); }

inline float* StagedValues(const TileGeometry& geometry, std::byte* scratch) {
  return StagedKeys(scratch) + uint64_t{kTileTokens} * PaddedDim(geometry.key_dim);
}

inline float* Scores(const TileGeometry& geometry, std::byte* scratch) {
  return StagedValues(geometry, scratch) + uint64_t{kTileTokens} * PaddedDim(geometry.value_dim);
}

inline bool Does(const TileGeometry&) { return true; }

inline void Pack(const TileGeometry& geometry, RowBlock* block) {
  const uint32_t padded = PaddedDim(geometry.key_dim);
  float* const queries = reinterpret_cast<float*>(block->queries);
  std::fill_n(queries, uint64_t{PaddedRows(*block)} * padded, 0.0f);
  for (uint32_t row = 0; row < block->rows; ++row) {
    DecodeRow(geometry.query_dtype, static_cast<const std::byte*>(block->query_rows[row]),
              geometry.key_dim, queries + uint64_t{row} * padded);
  }
}

inline void Begin(const TileGeometry& geometry, RowBlock* block) {
  std::fill_n(block->max, kBlockRows, -INFINITY);
  std::fill_n(block->sum, kBlockRows, 0.0f);
  std::fill_n(block->output, OutputBytes(geometry) / sizeof(float), 0.0f);
}

// Decodes octets of `dim` columns, prefetching as much of what comes next as it reads.
inline void StageOctets(KvDtype dtype, const std::byte* const* octets, const std::byte* const* next,
                        uint32_t count, uint32_t dim, bool prefetches, float* out) {
  const uint64_t row_bytes = RowBytes(dtype, dim);
  const uint32_t padded = PaddedDim(dim);
  for (uint32_t o = 0; o < count; ++o) {
    for (uint32_t t = 0; t < kOctetTokens; ++t, out += padded) {
      for (uint64_t i = 0; prefetches && i < row_bytes; i += kLineBytes) {
        hwy::Prefetch(next[o] + t * row_bytes + i);
      }
      DecodeRow(dtype, octets[o] + t * row_bytes, dim, out);
      std::fill(out + dim, out + padded, 0.0f);
    }
  }
}

inline void Stage(const TileGeometry& geometry, const Tile& tile, std::byte* scratch) {
  if (!IsStaged(geometry)) return;
  const bool has_next = tile.next.keys[0] != nullptr;
  if (geometry.values_in_keys) {
    return StageOctets(geometry.dtype, tile.bytes.keys, tile.next.keys, tile.octets,
                       geometry.key_dim, has_next, StagedKeys(scratch));
  }
  StageOctets(geometry.dtype, tile.bytes.keys, tile.bytes.values, tile.octets, geometry.key_dim,
              true, StagedKeys(scratch));
  StageOctets(geometry.dtype, tile.bytes.values, tile.next.keys, tile.octets, geometry.value_dim,
              has_next, StagedValues(geometry, scratch));
}

inline void RowsOf(const TileGeometry& geometry, const Tile& tile, std::byte* scratch, Rows* keys,
                   Rows* values) {
  keys->stride = PaddedDim(geometry.key_dim);
  values->stride = geometry.values_in_keys ? keys->stride : PaddedDim(geometry.value_dim);
  for (uint32_t o = 0; o < kTileOctets; ++o) {
    keys->octets[o] = reinterpret_cast<const float*>(tile.bytes.keys[o]);
    values->octets[o] = reinterpret_cast<const float*>(tile.bytes.values[o]);
    if (IsStaged(geometry)) {
      keys->octets[o] = StagedKeys(scratch) + o * kOctetTokens * keys->stride;
      values->octets[o] = StagedValues(geometry, scratch) + o * kOctetTokens * values->stride;
    }
    if (geometry.values_in_keys) values->octets[o] = keys->octets[o];
  }
}

template <int kRows>
void AttendRows(const TileGeometry& geometry, const Tile& tile, const Rows& keys,
                const Rows& values, uint32_t row, float* scores, RowBlock* block) {
  const uint32_t key_dim = PaddedDim(geometry.key_dim);
  const uint32_t value_dim = PaddedDim(geometry.value_dim);
  const float* queries = reinterpret_cast<const float*>(block->queries) + uint64_t{row} * key_dim;
  KeysByQueries<kRows>(keys, tile.octets, key_dim, queries, scores);
  float shrink[kRows];
  for (uint32_t r = 0; r < kRows; ++r) {
    // Padding rows are as good as any and are never read.
    const uint32_t like = std::min(row + r, block->rows - 1);
    if (like == row + r) {
      shrink[r] = SoftmaxRow(geometry, tile, like, block, scores + r * kTileTokens);
    } else {
      shrink[r] = 0;
      std::fill_n(scores + r * kTileTokens, kTileTokens, 0.0f);
    }
  }
  WeightsByValues<kRows>(values, tile.octets, value_dim, scores, shrink,
                         block->output + uint64_t{row} * value_dim);
}

inline void Attend(const TileGeometry& geometry, const Tile& tile, std::byte* scratch,
                   RowBlock* block) {
  if (block->is_first) Stage(geometry, tile, scratch);
  Rows keys, values;
  RowsOf(geometry, tile, scratch, &keys, &values);
  float* const scores = Scores(geometry, scratch);
  const uint32_t at_once = RowsAtOnce(*block);
  for (uint32_t row = 0; row < block->rows; row += at_once) {
    if (at_once == 4) {
      AttendRows<4>(geometry, tile, keys, values, row, scores, block);
    } else if (at_once == 2) {
      AttendRows<2>(geometry, tile, keys, values, row, scores, block);
    } else {
      AttendRows<1>(geometry, tile, keys, values, row, scores, block);
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

inline constexpr TileOps kOps = {HWY_STR(HWY_NAMESPACE), Does, Pack, Begin, Attend, Finish};

}  // namespace cairn::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // CAIRN_PORTABLE_TILE_INL
