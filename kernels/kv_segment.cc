#include "kernels/kv_segment.h"

namespace cairn::kernels {
namespace {

uint64_t Pad(uint64_t bytes) {
  return (bytes + kTileAlignBytes - 1) / kTileAlignBytes * kTileAlignBytes;
}

uint64_t ScalesBytes(const KvShape& shape) {
  switch (shape.scales) {
    case KvScales::kNone:
      return 0;
    case KvScales::kPerHead:
      return uint64_t{shape.kv_heads} * sizeof(float);
    case KvScales::kPerTokenAndHead:
      return uint64_t{shape.kv_heads} * shape.page_tokens * sizeof(float);
  }
  return 0;
}

Problem OutOfRange(const char* field, uint64_t value, uint64_t least, uint64_t most) {
  return std::string(field) + " " + std::to_string(value) + " is not within " +
         std::to_string(least) + " to " + std::to_string(most);
}

}  // namespace

Problem ValidateShape(const KvShape& shape) {
  if (BitsOf(shape.dtype) == 0) {
    return "dtype " + std::to_string(static_cast<uint32_t>(shape.dtype)) + " is not known";
  }
  if (shape.scales != KvScales::kNone && ScalesBytes(shape) == 0 && shape.kv_heads > 0 &&
      shape.page_tokens > 0) {
    return "scales " + std::to_string(static_cast<uint32_t>(shape.scales)) + " are not known";
  }
  if (shape.kv_heads < 1 || shape.kv_heads > kKvHeadsMax) {
    return OutOfRange("kv_heads", shape.kv_heads, 1, kKvHeadsMax);
  }
  if (shape.page_tokens < 1 || shape.page_tokens > kPageTokensMax) {
    return OutOfRange("page_tokens", shape.page_tokens, 1, kPageTokensMax);
  }
  if (shape.key_dim < 2 || shape.key_dim > kHeadDimMax) {
    return OutOfRange("key_dim", shape.key_dim, 2, kHeadDimMax);
  }
  if (shape.value_dim > kHeadDimMax)
    return OutOfRange("value_dim", shape.value_dim, 0, kHeadDimMax);
  if (shape.key_dim % 2 != 0) return "key_dim " + std::to_string(shape.key_dim) + " is odd";
  if (shape.value_dim % 2 != 0) return "value_dim " + std::to_string(shape.value_dim) + " is odd";
  const bool is_integer = shape.dtype == KvDtype::kInt8 || shape.dtype == KvDtype::kInt4;
  if (is_integer && shape.scales == KvScales::kNone) {
    return std::string(NameOf(shape.dtype)) + " needs scales, one a head or one a token and head";
  }
  return "";
}

KvSegment SegmentOf(const KvShape& shape) {
  const uint64_t rows = uint64_t{shape.kv_heads} * shape.page_tokens;
  KvSegment segment;
  segment.key_scales_bytes = ScalesBytes(shape);
  segment.key = Pad(segment.key_scales_bytes);
  segment.key_bytes = rows * RowBytes(shape.dtype, shape.key_dim);
  segment.value_scales = segment.key + Pad(segment.key_bytes);
  segment.value_scales_bytes = shape.value_dim == 0 ? 0 : ScalesBytes(shape);
  segment.value = segment.value_scales + Pad(segment.value_scales_bytes);
  segment.value_bytes = rows * RowBytes(shape.dtype, shape.value_dim);
  segment.bytes = segment.value + Pad(segment.value_bytes);
  return segment;
}

}  // namespace cairn::kernels
