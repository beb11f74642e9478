// CpuPath: which instructions the CPU kernels use. Chosen at run time.
#pragma once

#include <cstdint>

namespace cairn::kernels {

enum class CpuPath : uint32_t {
  kBaseline = 0,    // What every machine that the build is for has.
  kPortable = 1,    // The widest vectors that the build and the processor have, AVX-512 included.
  kAvx2 = 2,        // As portable, AVX2 at most.
  kAvx512Bf16 = 3,  // AVX-512 with bf16 dot products and VBMI; portable for what those cannot do.
};

bool IsAvailable(CpuPath path);

// The fastest one available.
CpuPath BestCpuPath();

const char* NameOf(CpuPath path);

}  // namespace cairn::kernels
