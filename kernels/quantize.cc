#include "kernels/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/attention/portable_tile.h"
#include "kernels/decode_element.h"

namespace cairn::kernels {
namespace {

template <class Code, class Encode>
void EncodeAll(const float* values, uint64_t count, float scale, std::byte* codes,
               const Encode& encode) {
  for (uint64_t i = 0; i < count; ++i) {
    const Code code = encode(values[i] / scale);
    std::memcpy(codes + i * sizeof(Code), &code, sizeof(code));
  }
}

void EncodeInt4(const float* values, uint64_t count, float scale, std::byte* codes) {
  for (uint64_t i = 0; i < count; i += 2) {
    const int32_t low = IntegerOfFloat(values[i] / scale, 7) & 0xf;
    const int32_t high = IntegerOfFloat(values[i + 1] / scale, 7) & 0xf;
    codes[i / 2] = static_cast<std::byte>(low | high << 4);
  }
}

}  // namespace

float CodeMax(KvDtype dtype) {
  switch (dtype) {
    case KvDtype::kFloat8E4m3fn:
      return 448;
    case KvDtype::kInt8:
      return 127;
    case KvDtype::kInt4:
      return 7;
    default:
      return 1;
  }
}

float ScaleFor(KvDtype dtype, const float* values, uint64_t count) {
  if (IsWideFloat(dtype)) return 1;
  float most = 0;
  for (uint64_t i = 0; i < count; ++i) {
    if (!std::isfinite(values[i])) return 1;
    most = std::max(most, std::fabs(values[i]));
  }
  const float scale = most / CodeMax(dtype);
  return scale > 0 ? scale : 1;
}

void Quantize(KvDtype dtype, const float* values, uint64_t count, float scale, std::byte* codes) {
  switch (dtype) {
    case KvDtype::kFloat16:
      return EncodeAll<uint16_t>(values, count, scale, codes, Float16OfFloat);
    case KvDtype::kBfloat16:
      return EncodeAll<uint16_t>(values, count, scale, codes, Bfloat16OfFloat);
    case KvDtype::kFloat32:
      return EncodeAll<float>(values, count, scale, codes, [](float value) { return value; });
    case KvDtype::kFloat8E4m3fn:
      return EncodeAll<uint8_t>(values, count, scale, codes, Float8OfFloat);
    case KvDtype::kInt8:
      return EncodeAll<int8_t>(values, count, scale, codes, [](float value) {
        return static_cast<int8_t>(IntegerOfFloat(value, 127));
      });
    case KvDtype::kInt4:
      return EncodeInt4(values, count, scale, codes);
  }
}

void Dequantize(KvDtype dtype, const std::byte* codes, uint64_t count, float scale, float* values) {
  PortableDecode(dtype, codes, count, values);
  if (scale == 1) return;
  for (uint64_t i = 0; i < count; ++i) values[i] *= scale;
}

}  // namespace cairn::kernels
