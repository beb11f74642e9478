// ModelShape: the sizes of a small Llama-style model, and the layout of its KV.
//
// Plain values; pure functions.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/identity/layout.h"
#include "kernels/kv_segment.h"

namespace cairn::replay {

struct ModelShape {
  uint32_t vocabulary = 512;
  uint32_t layers = 4;
  uint32_t hidden = 128;
  uint32_t query_heads = 8;
  uint32_t kv_heads = 2;
  uint32_t head_dim = 16;
  uint32_t ffn = 256;  // Width of the feed-forward layer.
};

// Of any one size of a model, and of all its weights.
inline constexpr uint32_t kModelSizeMax = 1 << 16;
inline constexpr uint64_t kModelWeightsMax = uint64_t{1} << 28;

// INVALID_ARGUMENT names the first size that is wrong.
absl::Status ValidateModelShape(const ModelShape& shape);

// REQUIRES: sizes of at most kModelSizeMax.
uint64_t WeightCount(const ModelShape& shape);

// How KV is stored: one group of full attention. Whether it makes sense is ValidateLayout's to say.
Layout ModelLayout(const ModelShape& shape, Dtype dtype, ScaleKind scales, uint32_t block_tokens,
                   uint32_t slices);

// What a page of one slice holds for a layer. REQUIRES: a valid layout of one group that is not
// opaque.
kernels::KvShape PageShape(const Layout& layout);

}  // namespace cairn::replay
