// KvShape and KvSegment: what one page holds for one layer, and where within its bytes.
//
// A segment is K scales, K tile, V scales, V tile, each padded with zeros to 64 bytes. Tiles are
// [kv_head][token][dim], scales [kv_head] or [kv_head][token]; a zero dim drops its scales and
// tile. Pure functions of the shape.
#pragma once

#include <cstdint>

#include "kernels/kv_dtype.h"
#include "kernels/problem.h"

namespace cairn::kernels {

struct KvShape {
  uint32_t kv_heads = 0;  // Those that the segment holds: of one slice.
  uint32_t page_tokens = 0;
  uint32_t key_dim = 0;    // Latent attention: latent + rope.
  uint32_t value_dim = 0;  // 0: latent attention, values are the first part of each key.
  KvDtype dtype = KvDtype::kBfloat16;
  KvScales scales = KvScales::kNone;
};

inline constexpr uint32_t kPageTokensMax = 1 << 14;
inline constexpr uint32_t kKvHeadsMax = 1 << 12;
inline constexpr uint32_t kHeadDimMax = 1 << 10;
inline constexpr uint64_t kTileAlignBytes = 64;

// Names the first field that is wrong. Dims are even, so that each row of an int4 tile starts at a
// byte; int8 and int4 have scales.
[[nodiscard]] Problem ValidateShape(const KvShape& shape);

// Bytes of one token of one head. REQUIRES of this and what follows: a valid shape.
constexpr uint64_t RowBytes(KvDtype dtype, uint32_t dim) {
  return uint64_t{dim} * BitsOf(dtype) / 8;
}

// Offsets within a segment. A run that the segment lacks has 0 bytes.
struct KvSegment {
  uint64_t key_scales = 0;
  uint64_t key_scales_bytes = 0;
  uint64_t key = 0;
  uint64_t key_bytes = 0;
  uint64_t value_scales = 0;
  uint64_t value_scales_bytes = 0;
  uint64_t value = 0;
  uint64_t value_bytes = 0;
  uint64_t bytes = 0;  // All of it, padding included.
};

KvSegment SegmentOf(const KvShape& shape);

}  // namespace cairn::kernels
