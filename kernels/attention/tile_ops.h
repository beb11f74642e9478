// TileOps: what one instruction set brings to paged attention, one tile of one KV head at a time.
//
// The runner cuts sequences into tiles of up to 64 tokens and query rows (query heads of one KV
// head's group, over all queries) into blocks of at most 16; ops keep an online softmax for each
// block. All memory is the caller's; ops allocate nothing and keep no state, so they are
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kv_dtype.h"

namespace cairn::kernels {

inline constexpr uint32_t kOctetTokens = 8;
inline constexpr uint32_t kTileOctets = 8;
inline constexpr uint32_t kOctetStep = 4;
inline constexpr uint32_t kTileTokens = kOctetTokens * kTileOctets;  // At most.
inline constexpr uint32_t kBlockRows = 16;

// What stays the same for a whole batch.
struct TileGeometry {
  uint32_t key_dim = 0;
  uint32_t value_dim = 0;  // Columns of the output.
  KvDtype dtype = KvDtype::kBfloat16;
  KvDtype query_dtype = KvDtype::kFloat32;
  bool values_in_keys = false;  // Latent: a value is the first value_dim elements of its key.
  bool scaled = false;          // Tiles bring scales.
  float softmax_scale = 1;
  float soft_cap = 0;
};

// Eight rows each, one after another; an octet that no row sees is all zeros.
using Octets = const std::byte* [kTileOctets];

struct Tile {
  // tile_octets() each, and behind them those that will be read next, as many twice over: addresses
  // to prefetch meanwhile.
  const std::byte* const* keys = nullptr;
  const std::byte* const* values = nullptr;  // Latent: unused.
  uint32_t octets = 0;       // A multiple of kOctetStep; those behind are not looked at.
  bool all_visible = false;  // Every row sees every token of the octets.
  alignas(64) float key_scales[kTileTokens];  // Finite where no row sees.
  alignas(64) float value_scales[kTileTokens];
};

// Rows that share a vector: a power of two.
constexpr uint32_t PaddedRows(uint32_t rows) {
  uint32_t padded = 1;
  while (padded < rows) padded *= 2;
  return padded;
}

// Rows that ops write are padded to this many elements.
constexpr uint32_t PaddedDim(uint32_t dim) { return (dim + 15) / 16 * 16; }

// Up to kBlockRows rows; memory aligned to 64 bytes, in the order that the ops like.
struct RowBlock {
  uint32_t rows = 0;
  bool is_first = false;               // Of its KV head: it stages and prefetches for all.
  const void* query_rows[kBlockRows];  // [key_dim] of query_dtype each.
  const uint64_t* visible = nullptr;   // [rows]; bit t: the row sees token t of the tile.
  std::byte* queries = nullptr;        // QueryBytes
  float* scores = nullptr;             // ScoreBytes
  float* output = nullptr;             // OutputBytes
  alignas(64) float max[kBlockRows];
  alignas(64) float sum[kBlockRows];
};

constexpr uint64_t QueryBytes(const TileGeometry& geometry, uint32_t rows) {
  return uint64_t{PaddedRows(rows)} * PaddedDim(geometry.key_dim) * sizeof(float);
}

constexpr uint64_t ScoreBytes(uint32_t rows) {
  return uint64_t{PaddedRows(rows)} * kTileTokens * sizeof(float);
}

constexpr uint64_t OutputBytes(const TileGeometry& geometry, uint32_t rows) {
  return uint64_t{PaddedRows(rows)} * PaddedDim(geometry.value_dim) * sizeof(float);
}

// Room for one tile's rows as float32, keys and values, and for a block's weights.
constexpr uint64_t TileScratchBytes(const TileGeometry& geometry) {
  return uint64_t{kTileTokens} * sizeof(float) *
         (PaddedDim(geometry.key_dim) + PaddedDim(geometry.value_dim) + kBlockRows);
}

struct TileOps {
  const char* name;

  // Whether the ops do this geometry at all.
  bool (*does)(const TileGeometry& geometry);

  // Octets of a tile: a multiple of kOctetStep that divides kTileOctets.
  uint32_t (*tile_octets)(const TileGeometry& geometry);

  // Packs the block's query rows.
  void (*pack)(const TileGeometry& geometry, RowBlock* block);

  // Empties the block's softmax.
  void (*begin)(const TileGeometry& geometry, RowBlock* block);

  // Scores of the tile's keys for a block's rows. `scratch` keeps what the first block of a KV head
  // left of converted numbers, where ops do not compute on stored bytes.
  void (*score)(const TileGeometry& geometry, const Tile& tile, std::byte* scratch,
                RowBlock* block);

  // Adds the tile's values by the scores that score() left in the block.
  void (*add)(const TileGeometry& geometry, const Tile& tile, std::byte* scratch, RowBlock* block);

  // One row's output (normalised) and natural log-sum-exp.
  void (*finish)(const TileGeometry& geometry, const RowBlock& block, uint32_t row, float* output,
                 float* log_sum_exp);
};

}  // namespace cairn::kernels
