// Floats of a given dtype for cases: ordinary ones, and among them what conversions get wrong.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/float_formats.h"
#include "kernels/kv_dtype.h"

namespace cairn::gpu_check {

// `count` numbers as bytes of `dtype` (a wide float). One in 64 is special if asked for: an
// infinity, a NaN, a subnormal, a zero of either sign, a large one.
inline std::vector<std::byte> MakeNumbers(kernels::KvDtype dtype, uint64_t count, bool with_special,
                                          std::mt19937_64* random) {
  constexpr float kSpecial[] = {std::numeric_limits<float>::infinity(),
                                -std::numeric_limits<float>::infinity(),
                                std::numeric_limits<float>::quiet_NaN(),
                                1e-40f,
                                -0.0f,
                                3e38f};
  std::normal_distribution<float> normal(0, 2);
  const uint64_t size = kernels::BitsOf(dtype) / 8;
  std::vector<std::byte> bytes(count * size);
  for (uint64_t i = 0; i < count; ++i) {
    float number = normal(*random);
    if (with_special && (*random)() % 64 == 0) number = kSpecial[(*random)() % std::size(kSpecial)];
    if (dtype == kernels::KvDtype::kFloat32) {
      std::memcpy(&bytes[i * size], &number, size);
    } else {
      const uint16_t code = dtype == kernels::KvDtype::kFloat16 ? kernels::Float16OfFloat(number)
                                                                : kernels::Bfloat16OfFloat(number);
      std::memcpy(&bytes[i * size], &code, size);
    }
  }
  return bytes;
}

inline constexpr kernels::KvDtype kAllDtypes[] = {
    kernels::KvDtype::kFloat16,      kernels::KvDtype::kBfloat16, kernels::KvDtype::kFloat32,
    kernels::KvDtype::kFloat8E4m3fn, kernels::KvDtype::kInt8,     kernels::KvDtype::kInt4};
inline constexpr kernels::KvDtype kWideDtypes[] = {
    kernels::KvDtype::kFloat16, kernels::KvDtype::kBfloat16, kernels::KvDtype::kFloat32};

}  // namespace cairn::gpu_check
