#include "tests/gpu/cases.h"

namespace cairn::gpu_check {

std::vector<GpuCase> AllCases() {
  std::vector<GpuCase> all;
  for (const auto& cases : {PrimitiveCases(), AppendCases(), AttentionCases(), BlockCopyCases(),
                            DeviceTierCases(), DigestCases(), QuantizeCases()}) {
    all.insert(all.end(), cases.begin(), cases.end());
  }
  return all;
}

}  // namespace cairn::gpu_check
