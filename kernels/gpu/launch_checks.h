// What launches of the byte kernels check and choose alike; on the host only.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/kv_dtype.h"
#include "kernels/problem.h"
#include "kernels/simt/simt.h"

CAIRN_SIMT_BEGIN

inline constexpr uint64_t kBlocksXMax = (uint64_t{1} << 31) - 1;

template <class T>
bool IsMultiple(const T* pointer, uint64_t bytes) {
  return reinterpret_cast<uintptr_t>(pointer) % bytes == 0;
}

// Blocks of `threads` for so many threads; 0 and a problem where there are too many.
inline Problem BlocksFor(uint64_t threads_wanted, uint32_t threads, uint32_t* blocks) {
  const uint64_t wanted = threads_wanted / threads + (threads_wanted % threads != 0 ? 1 : 0);
  *blocks = 0;
  if (wanted > kBlocksXMax) return "more blocks than a grid may have: " + std::to_string(wanted);
  *blocks = static_cast<uint32_t>(wanted);
  return "";
}

// call(std::integral_constant<KvDtype, dtype>) for the dtype at hand.
template <class Call>
Problem WithDtype(KvDtype dtype, const Call& call) {
  switch (dtype) {
    case KvDtype::kFloat16:
      return call(std::integral_constant<KvDtype, KvDtype::kFloat16>());
    case KvDtype::kBfloat16:
      return call(std::integral_constant<KvDtype, KvDtype::kBfloat16>());
    case KvDtype::kFloat32:
      return call(std::integral_constant<KvDtype, KvDtype::kFloat32>());
    case KvDtype::kFloat8E4m3fn:
      return call(std::integral_constant<KvDtype, KvDtype::kFloat8E4m3fn>());
    case KvDtype::kInt8:
      return call(std::integral_constant<KvDtype, KvDtype::kInt8>());
    case KvDtype::kInt4:
      return call(std::integral_constant<KvDtype, KvDtype::kInt4>());
  }
  return "dtype " + std::to_string(static_cast<uint32_t>(dtype)) + " is not known";
}

CAIRN_SIMT_END
