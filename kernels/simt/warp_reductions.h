// WarpSum and WarpMax of simt.h, for every backend; included by the primitives only.
#pragma once

#include <cstdint>
#include <type_traits>

namespace cairn::simt {
inline namespace CAIRN_SIMT_BACKEND {

template <class T>
CAIRN_SIMT_DEVICE T WarpSum(T value, uint32_t lanes, Site site) {
  CAIRN_SIMT_UNROLL
  for (uint32_t apart = 1; apart < lanes; apart *= 2) value += ShuffleXor(value, apart, site);
  return value;
}

template <class T>
CAIRN_SIMT_DEVICE T WarpMax(T value, uint32_t lanes, Site site) {
  CAIRN_SIMT_UNROLL
  for (uint32_t apart = 1; apart < lanes; apart *= 2) {
    const T other = ShuffleXor(value, apart, site);
    if constexpr (std::is_same_v<T, float>) {
      value = Max(value, other);
    } else {
      value = other > value ? other : value;
    }
  }
  return value;
}

}  // namespace CAIRN_SIMT_BACKEND
}  // namespace cairn::simt
