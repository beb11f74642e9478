// DecodeElement: one stored code as a number, exactly. The slow and obvious way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/float_formats.h"
#include "kernels/kv_dtype.h"

namespace cairn::kernels {

// Element `index` of the tile at `tile`, without its scale.
inline float DecodeElement(KvDtype dtype, const void* tile, uint64_t index) {
  const unsigned char* bytes = static_cast<const unsigned char*>(tile);
  uint16_t half;
  float full;
  switch (dtype) {
    case KvDtype::kFloat16:
      std::memcpy(&half, bytes + index * 2, sizeof(half));
      return FloatOfFloat16(half);
    case KvDtype::kBfloat16:
      std::memcpy(&half, bytes + index * 2, sizeof(half));
      return FloatOfBfloat16(half);
    case KvDtype::kFloat32:
      std::memcpy(&full, bytes + index * 4, sizeof(full));
      return full;
    case KvDtype::kFloat8E4m3fn:
      return FloatOfFloat8(bytes[index]);
    case KvDtype::kInt8:
      return static_cast<float>(static_cast<int8_t>(bytes[index]));
    case KvDtype::kInt4: {
      const int nibble = (bytes[index / 2] >> (index % 2 * 4)) & 0xf;
      return static_cast<float>(nibble < 8 ? nibble : nibble - 16);
    }
  }
  return 0;
}

}  // namespace cairn::kernels
