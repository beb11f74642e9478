// Site: a place of the source, for what the emulation says. Empty under nvcc.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)

namespace cairn::simt {
inline namespace on_cuda {

struct Site {
  __host__ __device__ static constexpr Site Here() { return {}; }
};

}  // namespace on_cuda
}  // namespace cairn::simt

#else

namespace cairn::simt {
inline namespace on_emulated {

struct Site {
  const char* file = "";
  uint32_t line = 0;

  // As a default argument: of whoever leaves the argument out.
  static constexpr Site Here(const char* file = __builtin_FILE(),
                             uint32_t line = __builtin_LINE()) {
    return {file, line};
  }
};

inline bool operator==(const Site& a, const Site& b) {
  return a.line == b.line && a.file == b.file;
}
inline bool operator!=(const Site& a, const Site& b) { return !(a == b); }

}  // namespace on_emulated
}  // namespace cairn::simt

#endif
