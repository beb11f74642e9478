#include "kernels/cpu_path.h"

#include "kernels/attention/avx512_tile.h"
#include "kernels/attention/portable_tile.h"

namespace cairn::kernels {

bool IsAvailable(CpuPath path) {
  if (path == CpuPath::kAvx512Bf16) return Avx512TileOps() != nullptr;
  return PortableTileOps(path) != nullptr;
}

CpuPath BestCpuPath() {
  return IsAvailable(CpuPath::kAvx512Bf16) ? CpuPath::kAvx512Bf16 : CpuPath::kPortable;
}

const char* NameOf(CpuPath path) {
  switch (path) {
    case CpuPath::kBaseline:
      return "baseline";
    case CpuPath::kPortable:
      return "portable";
    case CpuPath::kAvx2:
      return "avx2";
    case CpuPath::kAvx512Bf16:
      return "avx512_bf16";
  }
  return "unknown";
}

}  // namespace cairn::kernels
