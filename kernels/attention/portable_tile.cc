#include "kernels/attention/portable_tile.h"

// The baseline and two that matter: each target compiles all of it once more. The scalable ones
// have no vectors of a size known to the compiler.
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/portable_tile.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// Each builds on those before it.
// clang-format off
#include "kernels/attention/portable_decode.inc"
#include "kernels/attention/portable_products.inc"
#include "kernels/attention/portable_tile.inc"
// clang-format on

#if HWY_ONCE
namespace cairn::kernels {

HWY_EXPORT(DecodeRow);

void PortableDecode(KvDtype dtype, const std::byte* codes, uint64_t count, float* values) {
  HWY_DYNAMIC_DISPATCH(DecodeRow)(dtype, codes, count, values);
}

const TileOps* PortableTileOps(CpuPath path) {
  if (path == CpuPath::kBaseline) return &HWY_STATIC_DISPATCH(kOps);
  const int64_t supported = hwy::SupportedTargets();
#if HWY_TARGETS & HWY_AVX3
  if (path != CpuPath::kAvx2 && (supported & HWY_AVX3) != 0) return &N_AVX3::kOps;
#endif
#if HWY_TARGETS & HWY_AVX2
  if ((supported & HWY_AVX2) != 0) return &N_AVX2::kOps;
#endif
  (void)supported;
  return path == CpuPath::kAvx2 ? nullptr : &HWY_STATIC_DISPATCH(kOps);
}

}  // namespace cairn::kernels
#endif
