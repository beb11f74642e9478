// Scalar conversions between float32 and the stored formats: the definition that vector code is
// held against, over all codes.
//
// To a narrower format: to nearest, ties to even. float8 e4m3fn has no infinity: what is beyond its
// range, infinities included, saturates at 448; a NaN stays one. int8 and int4 saturate at +-127
// and +-7, and the code of a NaN is 0.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace cairn::kernels {

inline float FloatOfBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

inline uint32_t BitsOfFloat(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

inline float FloatOfBfloat16(uint16_t code) { return FloatOfBits(uint32_t{code} << 16); }

inline uint16_t Bfloat16OfFloat(float value) {
  const uint32_t bits = BitsOfFloat(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

inline float FloatOfFloat16(uint16_t code) {
  const uint32_t sign = uint32_t{code & 0x8000u} << 16;
  const uint32_t magnitude = code & 0x7fffu;
  if (magnitude >= 0x7c00u) {  // Infinity, or a NaN that is made quiet.
    const uint32_t quiet = magnitude > 0x7c00u ? 0x400000u : 0u;
    return FloatOfBits(sign | 0x7f800000u | quiet | ((magnitude & 0x3ffu) << 13));
  }
  // 2^112 makes up for the difference of the exponents' biases and normalises subnormals.
  const float value = FloatOfBits(magnitude << 13) * FloatOfBits(0x77800000u);
  return FloatOfBits(sign | BitsOfFloat(value));
}

inline uint16_t Float16OfFloat(float value) {
  const uint32_t bits = BitsOfFloat(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  }
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {  // Subnormal: adding 0.5 leaves the rounded code in the mantissa.
    const float shifted = FloatOfBits(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (BitsOfFloat(shifted) - 0x3f000000u));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

inline float FloatOfFloat8(uint8_t code) {
  const uint32_t magnitude = code & 0x7fu;
  const uint32_t sign = uint32_t{code & 0x80u} << 24;
  if (magnitude == 0x7fu) return FloatOfBits(sign | 0x7fc00000u);
  const float value = FloatOfBits(magnitude << 20) * FloatOfBits(0x7b800000u);  // 2^120
  return FloatOfBits(sign | BitsOfFloat(value));
}

inline uint8_t Float8OfFloat(float value) {
  const uint32_t bits = BitsOfFloat(value);
  const uint32_t sign = (bits >> 24) & 0x80u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint8_t>(sign | 0x7fu);
  if (magnitude >= 0x43e00000u) return static_cast<uint8_t>(sign | 0x7eu);  // 448
  if (magnitude < 0x3c800000u) {  // Below 2^-6: steps of 2^-9, the last bits of 2^14 + value.
    const float shifted = FloatOfBits(magnitude) + 16384.0f;
    return static_cast<uint8_t>(sign | (BitsOfFloat(shifted) - 0x46800000u));
  }
  const uint32_t rounded = magnitude + 0x7ffffu + ((magnitude >> 20) & 1u);
  return static_cast<uint8_t>(sign | ((rounded - 0x3c000000u) >> 20));
}

// `most` is 127 or 7.
inline int32_t IntegerOfFloat(float value, float most) {
  if (std::isnan(value)) return 0;
  const float clamped = value > most ? most : (value < -most ? -most : value);
  return static_cast<int32_t>(std::nearbyint(clamped));
}

}  // namespace cairn::kernels
