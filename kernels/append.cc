#include "kernels/append.h"

#include <cstring>
#include <vector>

#include "kernels/quantize.h"

namespace cairn::kernels {
namespace {

std::string Number(int64_t value) { return std::to_string(value); }

bool IsInside(const AppendBatch& batch, const KvPage& page, uint64_t bytes) {
  if (page.region >= batch.region_count) return false;
  const WritableKvRegion& region = batch.regions[page.region];
  const KvRegion readable = {region.base, region.bytes};
  return kernels::IsInside({&readable, 1, batch.segment_offset}, {0, page.offset}, bytes);
}

Problem Validate(const AppendBatch& batch) {
  Problem problem = ValidateShape(batch.shape);
  if (!problem.empty()) return problem;
  if (batch.shape.scales == KvScales::kPerHead) {
    return "scales one a head: unknown while a page fills; append takes none or one a token and "
           "head";
  }
  if (!IsWideFloat(batch.source_dtype)) {
    return std::string("source_dtype ") + NameOf(batch.source_dtype) +
           " is not float16, bfloat16 or float32";
  }
  const bool has_values = batch.shape.value_dim != 0;
  if (batch.token_count > 0 && (batch.slots == nullptr || batch.keys.data == nullptr ||
                                (has_values && batch.values.data == nullptr))) {
    return "slots, keys or values is null";
  }
  const uint64_t bytes = SegmentOf(batch.shape).bytes;
  for (uint64_t t = 0; t < batch.token_count; ++t) {
    if (batch.slots[t] < 0) continue;
    const uint64_t page = static_cast<uint64_t>(batch.slots[t]) / batch.shape.page_tokens;
    if (page >= batch.page_count || !IsInside(batch, batch.pages[page], bytes)) {
      return "token " + std::to_string(t) + ": slot " + Number(batch.slots[t]) +
             " is beyond the page table, or its page is not inside a region";
    }
  }
  return "";
}

// One row into its slot of a tile, and its scale.
void PutRow(const AppendBatch& batch, const std::byte* source, uint32_t dim, uint64_t row,
            std::byte* tile, std::byte* scales, std::vector<float>* numbers) {
  const KvDtype dtype = batch.shape.dtype;
  std::byte* const to = tile + row * RowBytes(dtype, dim);
  if (dtype == batch.source_dtype && batch.shape.scales == KvScales::kNone) {
    std::memcpy(to, source, RowBytes(dtype, dim));
    return;
  }
  numbers->resize(dim);
  Dequantize(batch.source_dtype, source, dim, 1, numbers->data());
  float scale = 1;
  if (batch.shape.scales == KvScales::kPerTokenAndHead) {
    scale = ScaleFor(dtype, numbers->data(), dim);
    std::memcpy(scales + row * sizeof(float), &scale, sizeof(scale));
  }
  Quantize(dtype, numbers->data(), dim, scale, to);
}

}  // namespace

Problem AppendTokens(const AppendBatch& batch) {
  Problem problem = Validate(batch);
  if (!problem.empty()) return problem;
  const KvShape& shape = batch.shape;
  const KvSegment segment = SegmentOf(shape);
  std::vector<float> numbers;
  for (uint64_t t = 0; t < batch.token_count; ++t) {
    if (batch.slots[t] < 0) continue;
    const uint64_t slot = static_cast<uint64_t>(batch.slots[t]);
    const KvPage& page = batch.pages[slot / shape.page_tokens];
    std::byte* const at = batch.regions[page.region].base + page.offset + batch.segment_offset;
    for (uint64_t h = 0; h < shape.kv_heads; ++h) {
      const uint64_t row = h * shape.page_tokens + slot % shape.page_tokens;
      PutRow(batch, batch.keys.data + t * batch.keys.token_stride + h * batch.keys.head_stride,
             shape.key_dim, row, at + segment.key, at + segment.key_scales, &numbers);
      if (shape.value_dim == 0) continue;
      PutRow(batch,
             batch.values.data + t * batch.values.token_stride + h * batch.values.head_stride,
             shape.value_dim, row, at + segment.value, at + segment.value_scales, &numbers);
    }
  }
  return "";
}

}  // namespace cairn::kernels
