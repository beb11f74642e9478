#include "kernels/attention/avx512_tile.h"

#if defined(__x86_64__)

#include <cpuid.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/attention/avx512_decode.h"
#include "kernels/attention/avx512_products.h"
#include "kernels/attention/avx512_softmax.h"
#include "kernels/attention/avx512_target.h"
#include "kernels/decode_element.h"

namespace cairn::kernels {
namespace {

constexpr uint32_t kDimStep = 64;
constexpr int kUsualRowBytes = 256;  // Heads of 128, which products are compiled for apart.

bool Does(const TileGeometry& geometry) {
  const bool is_narrow = geometry.dtype == KvDtype::kBfloat16 || BitsOf(geometry.dtype) <= 8;
  return is_narrow && geometry.key_dim % kDimStep == 0 && geometry.value_dim % kDimStep == 0;
}

// What is fetched ahead should not crowd out what is at hand; codes are shorter.
uint32_t OctetsOfTile(const TileGeometry& geometry) {
  return geometry.dtype == KvDtype::kBfloat16 ? kTileOctets / 2 : kTileOctets;
}

bool IsStaged(const TileGeometry& geometry) { return geometry.dtype != KvDtype::kBfloat16; }

// bfloat16 queries are used as they are; others become the sum of two bfloat16 numbers, exact for
// float16 and to 2^-17 for float32.
int Passes(const TileGeometry& geometry) {
  return geometry.query_dtype == KvDtype::kBfloat16 ? 1 : 2;
}

int64_t StagedRowBytes(uint32_t dim) { return int64_t{dim} * 2; }

struct Scratch {
  std::byte* keys;
  std::byte* values;
  uint32_t* weights;
};

Scratch ScratchOf(const TileGeometry& geometry, std::byte* memory) {
  Scratch scratch;
  scratch.keys = memory;
  scratch.values = scratch.keys + kTileTokens * StagedRowBytes(geometry.key_dim);
  std::byte* weights = scratch.values + kTileTokens * StagedRowBytes(geometry.value_dim);
  scratch.weights = reinterpret_cast<uint32_t*>(weights);
  return scratch;
}

// Piece `p` of every row, 64 / R bytes each, lies one after another; rows that there are not are
// zeros.
void PackRow(const uint16_t* codes, uint32_t dim, uint32_t row, uint32_t padded, std::byte* out) {
  const uint32_t piece = 32 / padded;
  for (uint32_t d = 0; d < dim; d += piece) {
    const uint64_t at = (uint64_t{d} * padded + uint64_t{row} * piece) * sizeof(uint16_t);
    std::memcpy(out + at, codes + d, piece * sizeof(uint16_t));
  }
}

void Pack(const TileGeometry& geometry, RowBlock* block) {
  const uint32_t dim = geometry.key_dim;
  const uint32_t padded = PaddedRows(block->rows);
  const uint64_t pass_bytes = uint64_t{padded} * dim * sizeof(uint16_t);
  const int passes = Passes(geometry);
  std::memset(block->queries, 0, pass_bytes * static_cast<uint64_t>(passes));
  for (uint32_t row = 0; row < block->rows; ++row) {
    if (passes == 1) {
      PackRow(static_cast<const uint16_t*>(block->query_rows[row]), dim, row, padded,
              block->queries);
      continue;
    }
    for (uint32_t begin = 0; begin < dim; begin += kDimStep) {
      uint16_t high[kDimStep], low[kDimStep];
      for (uint32_t d = 0; d < kDimStep; ++d) {
        const float value = DecodeElement(geometry.query_dtype, block->query_rows[row], begin + d);
        high[d] = Bfloat16OfFloat(value);
        low[d] = Bfloat16OfFloat(value - FloatOfBfloat16(high[d]));
      }
      std::byte* at = block->queries + uint64_t{begin} * padded * sizeof(uint16_t);
      PackRow(high, kDimStep, row, padded, at);
      PackRow(low, kDimStep, row, padded, at + pass_bytes);
    }
  }
}

void Begin(const TileGeometry& geometry, RowBlock* block) {
  std::fill_n(block->max, kBlockRows, -INFINITY);
  std::fill_n(block->sum, kBlockRows, 0.0f);
  std::fill_n(block->output, uint64_t{PaddedRows(block->rows)} * geometry.value_dim, 0.0f);
}

}  // namespace
}  // namespace cairn::kernels

CAIRN_AVX512_BEGIN
namespace cairn::kernels {
namespace {

// Codes of `octets` octets of `dim` columns to bfloat16.
void Decode(KvDtype dtype, const std::byte* const* codes, uint32_t octets, uint32_t dim,
            std::byte* out) {
  const uint64_t count = uint64_t{kOctetTokens} * dim;
  const DecodeTables& tables = Tables();
  for (uint32_t o = 0; o < octets; ++o, out += count * 2) {
    if (dtype == KvDtype::kFloat8E4m3fn) {
      avx512::DecodeBytes<false>(tables.float8, codes[o], count, out);
    } else if (dtype == KvDtype::kInt8) {
      avx512::DecodeBytes<true>(tables.int8, codes[o], count, out);
    } else {
      avx512::DecodeNibbles(tables.int4, codes[o], count, out);
    }
  }
}

// Where an octet's numbers are, in stored bytes or once they are staged.
void PointAt(const TileGeometry& geometry, const std::byte* const* stored, std::byte* staged,
             uint32_t dim, Octets* octets) {
  for (uint32_t o = 0; o < OctetsOfTile(geometry); ++o) {
    (*octets)[o] = IsStaged(geometry) ? staged + o * kOctetTokens * StagedRowBytes(dim) : stored[o];
  }
}

// Every how many steps a product of the block prefetches; 0: never. The first block of a head does
// it for all.
int StrideOf(const TileGeometry& geometry, const RowBlock& block) {
  return block.is_first ? static_cast<int>(16 / BitsOf(geometry.dtype)) : 0;
}

// Distances that were fastest: with many rows more is computed between two reads, and codes are all
// read at once, before the products. Those of a tile lie within the two units behind it.
avx512::Ahead AheadOf(const std::byte* const* stored, int stride, uint32_t rows) {
  if (stride > 1) return {stored, kTileOctets, kTileOctets * 3 / 2};
  if (rows >= 8) return {stored, 4, 6};
  return {stored, 2, 4};
}

template <int R, int kRowBytes>
void ScoreRows(int stride, const avx512::KeyArguments& in) {
  switch (stride) {
    case 0:
      return avx512::KeysByQueries<R, kRowBytes, 0>(in);
    case 1:
      return avx512::KeysByQueries<R, kRowBytes, 1>(in);
    case 2:
      return avx512::KeysByQueries<R, kRowBytes, 2>(in);
    default:
      return avx512::KeysByQueries<R, kRowBytes, 4>(in);
  }
}

template <int R>
void ScoreBlock(const TileGeometry& geometry, const Tile& tile, const Octets& keys,
                RowBlock* block) {
  const int stride = StrideOf(geometry, *block);
  avx512::KeyArguments in;
  in.keys = &keys;
  in.ahead = AheadOf(tile.keys, stride, R);
  in.octets = tile.octets;
  in.row_bytes = StagedRowBytes(geometry.key_dim);
  in.passes = Passes(geometry);
  in.queries = block->queries;
  in.scores = block->scores;
  if (in.row_bytes == kUsualRowBytes) return ScoreRows<R, kUsualRowBytes>(stride, in);
  ScoreRows<R, 0>(stride, in);
}

template <int R, int kColumns, int kRowBytes>
void AddStrided(int stride, const avx512::ValueArguments& in, const float* shrink) {
  switch (stride) {
    case 0:
      return avx512::WeightsByValues<R, kColumns, kRowBytes, 0>(in, shrink);
    case 1:
      return avx512::WeightsByValues<R, kColumns, kRowBytes, 1>(in, shrink);
    case 2:
      return avx512::WeightsByValues<R, kColumns, kRowBytes, 2>(in, shrink);
    default:
      return avx512::WeightsByValues<R, kColumns, kRowBytes, 4>(in, shrink);
  }
}

template <int R>
void AddBlock(const TileGeometry& geometry, const Tile& tile, const Octets& values,
              uint32_t* weights, RowBlock* block) {
  constexpr int kColumns = R <= 2 ? 4 : (R == 4 ? 2 : 1);
  alignas(64) float shrink[kBlockRows];
  _mm512_store_ps(shrink, avx512::Softmax<R>(geometry, tile, block->scores, weights, block));
  const bool in_keys = geometry.values_in_keys;
  const int stride = in_keys ? 0 : StrideOf(geometry, *block);
  avx512::ValueArguments in;
  in.values = &values;
  in.ahead = AheadOf(tile.values, stride, R);
  in.octets = tile.octets;
  in.span = IsStaged(geometry) || R == 16 ? tile.octets : 2;
  in.row_bytes = StagedRowBytes(in_keys ? geometry.key_dim : geometry.value_dim);
  in.weights = weights;
  in.columns = geometry.value_dim;
  in.output = block->output;
  if (in.row_bytes == kUsualRowBytes && !in_keys) {
    return AddStrided<R, kColumns, kUsualRowBytes>(stride, in, shrink);
  }
  if (in.columns % (32 * kColumns) == 0) return AddStrided<R, kColumns, 0>(stride, in, shrink);
  AddStrided<R, std::min(kColumns, 2), 0>(stride, in, shrink);
}

void Score(const TileGeometry& geometry, const Tile& tile, std::byte* memory, RowBlock* block) {
  const Scratch scratch = ScratchOf(geometry, memory);
  if (block->is_first && IsStaged(geometry)) {
    Decode(geometry.dtype, tile.keys, tile.octets, geometry.key_dim, scratch.keys);
  }
  Octets keys;
  PointAt(geometry, tile.keys, scratch.keys, geometry.key_dim, &keys);
  switch (PaddedRows(block->rows)) {
    case 1:
      return ScoreBlock<1>(geometry, tile, keys, block);
    case 2:
      return ScoreBlock<2>(geometry, tile, keys, block);
    case 4:
      return ScoreBlock<4>(geometry, tile, keys, block);
    case 8:
      return ScoreBlock<8>(geometry, tile, keys, block);
    default:
      return ScoreBlock<16>(geometry, tile, keys, block);
  }
}

void Add(const TileGeometry& geometry, const Tile& tile, std::byte* memory, RowBlock* block) {
  const Scratch scratch = ScratchOf(geometry, memory);
  if (block->is_first && IsStaged(geometry) && !geometry.values_in_keys) {
    Decode(geometry.dtype, tile.values, tile.octets, geometry.value_dim, scratch.values);
  }
  Octets values;
  if (geometry.values_in_keys) {
    PointAt(geometry, tile.keys, scratch.keys, geometry.key_dim, &values);
  } else {
    PointAt(geometry, tile.values, scratch.values, geometry.value_dim, &values);
  }
  switch (PaddedRows(block->rows)) {
    case 1:
      return AddBlock<1>(geometry, tile, values, scratch.weights, block);
    case 2:
      return AddBlock<2>(geometry, tile, values, scratch.weights, block);
    case 4:
      return AddBlock<4>(geometry, tile, values, scratch.weights, block);
    case 8:
      return AddBlock<8>(geometry, tile, values, scratch.weights, block);
    default:
      return AddBlock<16>(geometry, tile, values, scratch.weights, block);
  }
}

void Finish(const TileGeometry& geometry, const RowBlock& block, uint32_t row, float* output,
            float* log_sum_exp) {
  const uint32_t lanes = kBlockRows / PaddedRows(block.rows);
  float sum = 0;
  for (uint32_t i = 0; i < lanes; ++i) sum += block.sum[row * lanes + i];
  const bool is_empty = sum == 0;
  const __m512 factor = _mm512_set1_ps(is_empty ? 0.0f : 1.0f / sum);
  const __m512i first = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
  const __m512i second =
      _mm512_setr_epi32(8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31);
  const float* from = block.output + uint64_t{row} * geometry.value_dim;
  for (uint32_t d = 0; d < geometry.value_dim; d += 32) {
    const __m512 low = _mm512_mul_ps(_mm512_load_ps(from + d), factor);
    const __m512 high = _mm512_mul_ps(_mm512_load_ps(from + d + 16), factor);
    _mm512_storeu_ps(output + d, _mm512_permutex2var_ps(low, first, high));
    _mm512_storeu_ps(output + d + 16, _mm512_permutex2var_ps(low, second, high));
  }
  const float most = block.max[row * lanes];
  *log_sum_exp = is_empty ? -INFINITY : most * avx512::kLn2 + std::log(sum);
}

}  // namespace
}  // namespace cairn::kernels
CAIRN_AVX512_END

namespace cairn::kernels {
namespace {

constexpr TileOps kOps = {"avx512_bf16", Does, OctetsOfTile, Pack, Begin, Score, Add, Finish};

// Whether the processor has them and the system saves their registers.
bool HasAvx512Bf16() {
  unsigned a, b, c, d;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl") ||
      !__builtin_cpu_supports("avx512vbmi")) {
    return false;
  }
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & (1u << 5)) != 0;
}

}  // namespace

const TileOps* Avx512TileOps() {
  static const bool has = HasAvx512Bf16();
  return has ? &kOps : nullptr;
}

}  // namespace cairn::kernels

#else

namespace cairn::kernels {

const TileOps* Avx512TileOps() { return nullptr; }

}  // namespace cairn::kernels

#endif
