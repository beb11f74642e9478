// EngineTensor: one layer of an engine's own KV cache, described by strides.
//
// A plain value over the engine's memory. The four usual layouts have a maker each way; others fill
// the strides themselves. Heads may be a slice of the engine's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kv_segment.h"
#include "kernels/problem.h"

namespace cairn::kernels {

// Where one scale is: base + block * block_stride + head * head_stride + token * token_stride, the
// last with scales one a token and head only.
struct EngineScales {
  std::byte* base = nullptr;
  uint64_t bytes = 0;
  uint64_t block_stride = 0;
  uint64_t head_stride = 0;
  uint64_t token_stride = 0;
};

// Rows of (block, head, token) begin at base + block * block_stride + head * head_stride + token *
// token_stride, plus key_offset or value_offset; a row's elements follow each other. All in bytes.
struct EngineTensor {
  std::byte* base = nullptr;
  uint64_t bytes = 0;
  uint64_t blocks = 0;
  uint64_t block_stride = 0;
  uint64_t head_stride = 0;
  uint64_t token_stride = 0;
  uint64_t key_offset = 0;
  uint64_t value_offset = 0;
  EngineScales key_scales;  // Used where the shape has scales.
  EngineScales value_scales;
};

enum class EngineLayout : uint32_t {
  kKvBlocks,       // [2, blocks, tokens, heads, dim]
  kBlocksKv,       // [blocks, 2, tokens, heads, dim]
  kBlocksKvHeads,  // [blocks, 2, heads, tokens, dim]
  kPacked,         // [blocks, tokens, heads, K then V]; latent: keys only
};

// The whole tensor holds `tensor_heads` heads; what is described are shape.kv_heads of them from
// `first_head` on. `bytes` is what the layout takes. Scales are left to the caller. REQUIRES: a
// valid shape; equal key_dim and value_dim unless packed.
EngineTensor MakeEngineTensor(EngineLayout layout, const KvShape& shape, uint64_t blocks,
                              uint32_t tensor_heads, uint32_t first_head, std::byte* base);

// Whether every row (and scale) of every block lies within the tensor's memory.
[[nodiscard]] Problem ValidateEngineTensor(const KvShape& shape, const EngineTensor& tensor);

}  // namespace cairn::kernels
