#include "kernels/block_copy.h"

#include <cstring>

namespace cairn::kernels {
namespace {

// total += a * b; false on overflow.
bool AddProduct(uint64_t a, uint64_t b, uint64_t* total) {
  uint64_t product;
  return !__builtin_mul_overflow(a, b, &product) && !__builtin_add_overflow(*total, product, total);
}

// Whether the last byte of the last run lies within `bytes`.
bool Fits(uint64_t blocks, uint64_t block_stride, uint64_t heads, uint64_t head_stride,
          uint64_t tokens, uint64_t token_stride, uint64_t run_end, uint64_t bytes) {
  uint64_t end = run_end;
  return AddProduct(blocks - 1, block_stride, &end) && AddProduct(heads - 1, head_stride, &end) &&
         AddProduct(tokens - 1, token_stride, &end) && end <= bytes;
}

bool ScalesFit(const KvShape& shape, const EngineTensor& tensor, const EngineScales& scales) {
  const uint64_t tokens = shape.scales == KvScales::kPerHead ? 1 : shape.page_tokens;
  return scales.base != nullptr &&
         Fits(tensor.blocks, scales.block_stride, shape.kv_heads, scales.head_stride, tokens,
              scales.token_stride, sizeof(float), scales.bytes);
}

enum class Direction { kGather, kScatter };

// From the engine to the store, or back.
void Move(Direction direction, std::byte* stored, std::byte* engine, uint64_t bytes) {
  if (direction == Direction::kGather) {
    std::memcpy(stored, engine, bytes);
  } else {
    std::memcpy(engine, stored, bytes);
  }
}

// One head's rows.
void MoveRows(Direction direction, std::byte* stored, std::byte* engine, uint64_t tokens,
              uint64_t row_bytes, uint64_t token_stride) {
  if (token_stride == row_bytes) return Move(direction, stored, engine, tokens * row_bytes);
  for (uint64_t t = 0; t < tokens; ++t) {
    Move(direction, stored + t * row_bytes, engine + t * token_stride, row_bytes);
  }
}

void MoveTile(Direction direction, const BlockCopy& copy, uint64_t block, uint32_t dim,
              uint64_t offset, std::byte* tile) {
  const uint64_t row_bytes = RowBytes(copy.shape.dtype, dim);
  const uint64_t head_bytes = row_bytes * copy.shape.page_tokens;
  const EngineTensor& tensor = copy.tensor;
  std::byte* const from = tensor.base + block * tensor.block_stride + offset;
  for (uint64_t h = 0; h < copy.shape.kv_heads; ++h) {
    MoveRows(direction, tile + h * head_bytes, from + h * tensor.head_stride,
             copy.shape.page_tokens, row_bytes, tensor.token_stride);
  }
}

void MoveScales(Direction direction, const KvShape& shape, const EngineScales& scales,
                uint64_t block, std::byte* stored) {
  const uint64_t tokens = shape.scales == KvScales::kPerHead ? 1 : shape.page_tokens;
  std::byte* const from = scales.base + block * scales.block_stride;
  for (uint64_t h = 0; h < shape.kv_heads; ++h) {
    MoveRows(direction, stored + h * tokens * sizeof(float), from + h * scales.head_stride, tokens,
             sizeof(float), scales.token_stride);
  }
}

void ZeroPadding(const KvSegment& segment, std::byte* at) {
  const auto zero = [at](uint64_t begin, uint64_t end) { std::memset(at + begin, 0, end - begin); };
  zero(segment.key_scales + segment.key_scales_bytes, segment.key);
  zero(segment.key + segment.key_bytes, segment.value_scales);
  zero(segment.value_scales + segment.value_scales_bytes, segment.value);
  zero(segment.value + segment.value_bytes, segment.bytes);
}

Problem Validate(const BlockCopy& copy) {
  Problem problem = ValidateShape(copy.shape);
  if (problem.empty()) problem = ValidateEngineTensor(copy.shape, copy.tensor);
  if (!problem.empty()) return problem;
  if (copy.place_count > 0 && copy.places == nullptr) return "places is null";
  const uint64_t bytes = SegmentOf(copy.shape).bytes;
  for (uint64_t i = 0; i < copy.place_count; ++i) {
    const BlockPlace& place = copy.places[i];
    if (place.block >= copy.tensor.blocks) {
      return "place " + std::to_string(i) + ": block " + std::to_string(place.block) +
             " is not below " + std::to_string(copy.tensor.blocks);
    }
    const bool is_known = place.page.region < copy.region_count;
    KvRegion region;
    if (is_known) {
      region = {copy.regions[place.page.region].base, copy.regions[place.page.region].bytes};
    }
    if (!is_known || !IsInside({&region, 1, copy.segment_offset}, {0, place.page.offset}, bytes)) {
      return "place " + std::to_string(i) + ": page (region " + std::to_string(place.page.region) +
             ", offset " + std::to_string(place.page.offset) + ") is not inside a region";
    }
  }
  return "";
}

Problem MoveBlocks(Direction direction, const BlockCopy& copy) {
  Problem problem = Validate(copy);
  if (!problem.empty()) return problem;
  const KvShape& shape = copy.shape;
  const KvSegment segment = SegmentOf(shape);
  const bool scaled = shape.scales != KvScales::kNone;
  for (uint64_t i = 0; i < copy.place_count; ++i) {
    const BlockPlace& place = copy.places[i];
    const uint64_t block = place.block;
    std::byte* const at =
        copy.regions[place.page.region].base + place.page.offset + copy.segment_offset;
    if (scaled) {
      MoveScales(direction, shape, copy.tensor.key_scales, block, at + segment.key_scales);
    }
    MoveTile(direction, copy, block, shape.key_dim, copy.tensor.key_offset, at + segment.key);
    if (shape.value_dim != 0) {
      if (scaled) {
        MoveScales(direction, shape, copy.tensor.value_scales, block, at + segment.value_scales);
      }
      MoveTile(direction, copy, block, shape.value_dim, copy.tensor.value_offset,
               at + segment.value);
    }
    if (direction == Direction::kGather) ZeroPadding(segment, at);
  }
  return "";
}

}  // namespace

EngineTensor MakeEngineTensor(EngineLayout layout, const KvShape& shape, uint64_t blocks,
                              uint32_t tensor_heads, uint32_t first_head, std::byte* base) {
  const uint64_t tokens = shape.page_tokens;
  const uint64_t key_row = RowBytes(shape.dtype, shape.key_dim);
  const uint64_t value_row = RowBytes(shape.dtype, shape.value_dim);
  const uint64_t half_bytes = tokens * tensor_heads * key_row;  // A block's keys.
  EngineTensor tensor;
  tensor.base = base;
  tensor.blocks = blocks;
  tensor.head_stride = key_row;
  tensor.token_stride = tensor_heads * key_row;
  tensor.block_stride = 2 * half_bytes;
  tensor.value_offset = half_bytes;
  tensor.bytes = 2 * blocks * half_bytes;
  if (layout == EngineLayout::kKvBlocks) {
    tensor.block_stride = half_bytes;
    tensor.value_offset = blocks * half_bytes;
  } else if (layout == EngineLayout::kBlocksKvHeads) {
    tensor.head_stride = tokens * key_row;
    tensor.token_stride = key_row;
  } else if (layout == EngineLayout::kPacked) {
    tensor.head_stride = key_row + value_row;
    tensor.token_stride = tensor_heads * tensor.head_stride;
    tensor.block_stride = tokens * tensor.token_stride;
    tensor.value_offset = key_row;
    tensor.bytes = blocks * tensor.block_stride;
  }
  tensor.key_offset = first_head * tensor.head_stride;
  tensor.value_offset += first_head * tensor.head_stride;
  return tensor;
}

Problem ValidateEngineTensor(const KvShape& shape, const EngineTensor& tensor) {
  if (tensor.base == nullptr || tensor.blocks == 0) return "the engine's tensor is null or empty";
  const auto fits = [&](uint64_t offset, uint32_t dim) {
    uint64_t run_end = offset;
    return AddProduct(1, RowBytes(shape.dtype, dim), &run_end) &&
           Fits(tensor.blocks, tensor.block_stride, shape.kv_heads, tensor.head_stride,
                shape.page_tokens, tensor.token_stride, run_end, tensor.bytes);
  };
  const bool has_values = shape.value_dim != 0;
  if (!fits(tensor.key_offset, shape.key_dim) ||
      (has_values && !fits(tensor.value_offset, shape.value_dim))) {
    return "the engine's strides leave its tensor of " + std::to_string(tensor.bytes) + " bytes";
  }
  if (shape.scales == KvScales::kNone) return "";
  if (!ScalesFit(shape, tensor, tensor.key_scales) ||
      (has_values && !ScalesFit(shape, tensor, tensor.value_scales))) {
    return "the engine's scales are null, or their strides leave their memory";
  }
  return "";
}

Problem GatherBlocks(const BlockCopy& copy) { return MoveBlocks(Direction::kGather, copy); }

Problem ScatterBlocks(const BlockCopy& copy) { return MoveBlocks(Direction::kScatter, copy); }

}  // namespace cairn::kernels
