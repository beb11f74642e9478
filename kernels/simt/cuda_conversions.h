// The conversions of simt.h by PTX; included by cuda_primitives.h only.
//
// Codes are put into the bits of a float that differs from them by a power of two or a constant,
// which one multiplication or subtraction takes away, exactly. bfloat16 uses fused multiply-adds,
// all that sm_80 has for it.
#pragma once

#include <cstdint>

namespace cairn::simt {
inline namespace on_cuda {

template <MatrixFloat kFloat>
CAIRN_SIMT_DEVICE uint32_t PackPair(float low, float high) {
  uint32_t pair;
  if constexpr (kFloat == MatrixFloat::kBfloat16) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  }
  return pair;
}

template <MatrixFloat kFloat>
CAIRN_SIMT_DEVICE float LowOf(uint32_t pair) {
  if constexpr (kFloat == MatrixFloat::kBfloat16) return __uint_as_float(pair << 16);
  float value;
  asm("{.reg .b16 low, high;\n mov.b32 {low, high}, %1;\n cvt.f32.f16 %0, low;}"
      : "=f"(value)
      : "r"(pair));
  return value;
}

template <MatrixFloat kFloat>
CAIRN_SIMT_DEVICE float HighOf(uint32_t pair) {
  if constexpr (kFloat == MatrixFloat::kBfloat16) return __uint_as_float(pair & 0xffff0000u);
  float value;
  asm("{.reg .b16 low, high;\n mov.b32 {low, high}, %1;\n cvt.f32.f16 %0, high;}"
      : "=f"(value)
      : "r"(pair));
  return value;
}

template <MatrixFloat kFloat>
CAIRN_SIMT_DEVICE uint32_t MultiplyAddPair(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t pair;
  if constexpr (kFloat == MatrixFloat::kBfloat16) {
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(pair) : "r"(a), "r"(b), "r"(c));
  } else {
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(pair) : "r"(a), "r"(b), "r"(c));
  }
  return pair;
}

// Two codes, each in the upper byte of a half.
template <MatrixFloat kFloat>
CAIRN_SIMT_DEVICE uint32_t DecodeFloat8Bytes(uint32_t bytes) {
  constexpr bool kBf16 = kFloat == MatrixFloat::kBfloat16;
  const uint32_t magnitude = kBf16 ? ((bytes >> 4) & 0x07f007f0u) : ((bytes >> 1) & 0x3f803f80u);
  const uint32_t scale = kBf16 ? 0x7b807b80u : 0x5c005c00u;  // 2^120, 2^8
  const uint32_t minus_zero = 0x80008000u;
  const uint32_t number =
      MultiplyAddPair<kFloat>(magnitude | (bytes & 0x80008000u), scale, minus_zero);
  // A magnitude of all ones is a NaN: its sum carries into the sign.
  const uint32_t nan = ((bytes & 0x7f007f00u) + 0x01000100u) & 0x80008000u;
  return number | (nan - (nan >> (kBf16 ? 9 : 6)));
}

template <MatrixFloat kFloat>
CAIRN_SIMT_DEVICE TwoPairs DecodeFloat8(uint32_t codes) {
#if __CUDA_ARCH__ >= 890
  if constexpr (kFloat == MatrixFloat::kFloat16) {
    TwoPairs pairs;
    asm("{.reg .b16 low, high;\n mov.b32 {low, high}, %2;\n cvt.rn.f16x2.e4m3x2 %0, low;\n"
        " cvt.rn.f16x2.e4m3x2 %1, high;}"
        : "=r"(pairs.low), "=r"(pairs.high)
        : "r"(codes));
    return pairs;
  }
#endif
  return {DecodeFloat8Bytes<kFloat>(__byte_perm(codes, 0, 0x1404)),
          DecodeFloat8Bytes<kFloat>(__byte_perm(codes, 0, 0x3424))};
}

// Two codes, each in the lower byte of a half.
template <MatrixFloat kFloat>
CAIRN_SIMT_DEVICE uint32_t DecodeInt8Bytes(uint32_t bytes) {
  if constexpr (kFloat == MatrixFloat::kBfloat16) {
    // 128 plus the low seven bits, less 128, or 256 for a negative one.
    const uint32_t plus = (bytes & 0x007f007fu) | 0x43004300u;
    const uint32_t minus = (bytes & 0x00800080u) | 0xc300c300u;
    return MultiplyAddPair<kFloat>(plus, 0x3f803f80u, minus);
  }
  // 1024 plus the code and 128, less 1152.
  return MultiplyAddPair<kFloat>((bytes ^ 0x00800080u) | 0x64006400u, 0x3c003c00u, 0xe480e480u);
}

template <MatrixFloat kFloat>
CAIRN_SIMT_DEVICE TwoPairs DecodeInt8(uint32_t codes) {
  return {DecodeInt8Bytes<kFloat>(__byte_perm(codes, 0, 0x4140)),
          DecodeInt8Bytes<kFloat>(__byte_perm(codes, 0, 0x4342))};
}

// Two codes, each in the lowest four bits of a half.
template <MatrixFloat kFloat>
CAIRN_SIMT_DEVICE uint32_t DecodeInt4Nibbles(uint32_t nibbles) {
  const uint32_t above = nibbles ^ 0x00080008u;  // The code and 8.
  if constexpr (kFloat == MatrixFloat::kBfloat16) {
    return MultiplyAddPair<kFloat>(above | 0x43004300u, 0x3f803f80u, 0xc308c308u);
  }
  return MultiplyAddPair<kFloat>(above | 0x64006400u, 0x3c003c00u, 0xe408e408u);
}

template <MatrixFloat kFloat>
CAIRN_SIMT_DEVICE TwoPairs DecodeInt4(uint32_t codes) {
  return {DecodeInt4Nibbles<kFloat>((codes & 0xfu) | ((codes & 0xf0u) << 12)),
          DecodeInt4Nibbles<kFloat>(((codes >> 8) & 0xfu) | ((codes & 0xf000u) << 4))};
}

}  // namespace on_cuda
}  // namespace cairn::simt
