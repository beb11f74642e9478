// KvDtype, KvScales: how the elements of KV tiles are stored.
//
// Numbers are those of a namespace's layout, so that a caller may cast. Values are little-endian;
// int8 and int4 are two's complement; int4 packs a whole tile, even index in the low nibble. With
// scales, an element's value is code * scale.
#pragma once

#include <cstdint>

namespace cairn::kernels {

enum class KvDtype : uint32_t {
  kFloat16 = 1,
  kBfloat16 = 2,
  kFloat32 = 3,
  kFloat8E4m3fn = 4,
  kInt8 = 5,
  kInt4 = 6,
};

// One scale is a float32.
enum class KvScales : uint32_t {
  kNone = 0,
  kPerHead = 1,          // [kv_head]
  kPerTokenAndHead = 2,  // [kv_head][token]
};

// 0 for a number that is no dtype.
constexpr uint32_t BitsOf(KvDtype dtype) {
  switch (dtype) {
    case KvDtype::kFloat16:
    case KvDtype::kBfloat16:
      return 16;
    case KvDtype::kFloat32:
      return 32;
    case KvDtype::kFloat8E4m3fn:
    case KvDtype::kInt8:
      return 8;
    case KvDtype::kInt4:
      return 4;
  }
  return 0;
}

constexpr const char* NameOf(KvDtype dtype) {
  switch (dtype) {
    case KvDtype::kFloat16:
      return "float16";
    case KvDtype::kBfloat16:
      return "bfloat16";
    case KvDtype::kFloat32:
      return "float32";
    case KvDtype::kFloat8E4m3fn:
      return "float8_e4m3fn";
    case KvDtype::kInt8:
      return "int8";
    case KvDtype::kInt4:
      return "int4";
  }
  return "unknown";
}

// Floats whose value needs no scale to be of use.
constexpr bool IsWideFloat(KvDtype dtype) {
  return dtype == KvDtype::kFloat16 || dtype == KvDtype::kBfloat16 || dtype == KvDtype::kFloat32;
}

}  // namespace cairn::kernels
