// Conversions between float32 and the stored formats on the device: float_formats.h, bit for bit.
//
// Written out as there, in operations that every machine rounds alike (no approximations, no
// flushing of subnormals: kernels are compiled without fast math).
#pragma once

#include <cstdint>

#include "kernels/kv_dtype.h"
#include "kernels/simt/simt.h"

CAIRN_SIMT_BEGIN

template <KvDtype kDtype>
constexpr uint32_t kBitsOf = BitsOf(kDtype);
template <KvDtype kDtype>
constexpr bool kIsWide = IsWideFloat(kDtype);

CAIRN_SIMT_DEVICE float NumberOfBfloat16(uint32_t code) { return simt::FloatOf(code << 16); }

CAIRN_SIMT_DEVICE uint32_t Bfloat16Code(float value) {
  const uint32_t bits = simt::BitsOf(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (bits >> 16) | 0x40u;
  return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}

CAIRN_SIMT_DEVICE float NumberOfFloat16(uint32_t code) {
  const uint32_t sign = (code & 0x8000u) << 16;
  const uint32_t magnitude = code & 0x7fffu;
  if (magnitude >= 0x7c00u) {
    const uint32_t quiet = magnitude > 0x7c00u ? 0x400000u : 0u;
    return simt::FloatOf(sign | 0x7f800000u | quiet | ((magnitude & 0x3ffu) << 13));
  }
  const float value = simt::FloatOf(magnitude << 13) * simt::FloatOf(0x77800000u);
  return simt::FloatOf(sign | simt::BitsOf(value));
}

CAIRN_SIMT_DEVICE uint32_t Float16Code(float value) {
  const uint32_t bits = simt::BitsOf(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;
  if (magnitude < 0x38800000u) {
    const float shifted = simt::FloatOf(magnitude) + 0.5f;
    return sign | (simt::BitsOf(shifted) - 0x3f000000u);
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return sign | ((rounded - 0x38000000u) >> 13);
}

CAIRN_SIMT_DEVICE float NumberOfFloat8(uint32_t code) {
  const uint32_t magnitude = code & 0x7fu;
  const uint32_t sign = (code & 0x80u) << 24;
  if (magnitude == 0x7fu) return simt::FloatOf(sign | 0x7fc00000u);
  const float value = simt::FloatOf(magnitude << 20) * simt::FloatOf(0x7b800000u);
  return simt::FloatOf(sign | simt::BitsOf(value));
}

CAIRN_SIMT_DEVICE uint32_t Float8Code(float value) {
  const uint32_t bits = simt::BitsOf(value);
  const uint32_t sign = (bits >> 24) & 0x80u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7fu;
  if (magnitude >= 0x43e00000u) return sign | 0x7eu;
  if (magnitude < 0x3c800000u) {
    const float shifted = simt::FloatOf(magnitude) + 16384.0f;
    return sign | (simt::BitsOf(shifted) - 0x46800000u);
  }
  const uint32_t rounded = magnitude + 0x7ffffu + ((magnitude >> 20) & 1u);
  return sign | ((rounded - 0x3c000000u) >> 20);
}

// `most` is 127 or 7.
CAIRN_SIMT_DEVICE int32_t IntegerCode(float value, float most) {
  if (value != value) return 0;
  const float clamped = value > most ? most : (value < -most ? -most : value);
  return static_cast<int32_t>(simt::RoundToEven(clamped));
}

// The code of a number, in the lowest bits.
template <KvDtype kDtype>
CAIRN_SIMT_DEVICE uint32_t CodeOf(float number) {
  if constexpr (kDtype == KvDtype::kFloat16) return Float16Code(number);
  if constexpr (kDtype == KvDtype::kBfloat16) return Bfloat16Code(number);
  if constexpr (kDtype == KvDtype::kFloat32) return simt::BitsOf(number);
  if constexpr (kDtype == KvDtype::kFloat8E4m3fn) return Float8Code(number);
  if constexpr (kDtype == KvDtype::kInt8) {
    return static_cast<uint32_t>(IntegerCode(number, 127)) & 0xffu;
  }
  if constexpr (kDtype == KvDtype::kInt4) {
    return static_cast<uint32_t>(IntegerCode(number, 7)) & 0xfu;
  }
}

// Bits above those of a code are ignored.
template <KvDtype kDtype>
CAIRN_SIMT_DEVICE float NumberOf(uint32_t code) {
  if constexpr (kDtype == KvDtype::kFloat16) return NumberOfFloat16(code & 0xffffu);
  if constexpr (kDtype == KvDtype::kBfloat16) return NumberOfBfloat16(code);
  if constexpr (kDtype == KvDtype::kFloat32) return simt::FloatOf(code);
  if constexpr (kDtype == KvDtype::kFloat8E4m3fn) return NumberOfFloat8(code & 0xffu);
  if constexpr (kDtype == KvDtype::kInt8) {
    return static_cast<float>(static_cast<int32_t>((code & 0xffu) ^ 0x80u) - 128);
  }
  if constexpr (kDtype == KvDtype::kInt4) {
    return static_cast<float>(static_cast<int32_t>((code & 0xfu) ^ 8u) - 8);
  }
}

// CodeMax of quantize.h.
template <KvDtype kDtype>
CAIRN_SIMT_DEVICE float CodeLimit() {
  if constexpr (kDtype == KvDtype::kFloat8E4m3fn) return 448;
  if constexpr (kDtype == KvDtype::kInt8) return 127;
  if constexpr (kDtype == KvDtype::kInt4) return 7;
  return 1;
}

// ScaleFor of quantize.h, by the largest of the numbers' bits without their signs: those of what is
// not finite are above all others.
template <KvDtype kDtype>
CAIRN_SIMT_DEVICE float ScaleOfLargest(uint32_t bits) {
  if (kIsWide<kDtype> || bits >= 0x7f800000u) return 1;
  const float scale = simt::FloatOf(bits) / CodeLimit<kDtype>();
  return scale > 0 ? scale : 1;
}

CAIRN_SIMT_END
