// For any machine, every dtype and head size: Highway, computing in float32.
#pragma once

#include "kernels/attention/tile_ops.h"
#include "kernels/cpu_path.h"

namespace cairn::kernels {

// For kAvx512Bf16 those of kPortable. Null where the build or the
// processor lacks the path; never for kPortable and kBaseline.
const TileOps* PortableTileOps(CpuPath path);

// Stored codes to float32 without a scale, by the widest vectors there are.
void PortableDecode(KvDtype dtype, const std::byte* codes, uint64_t count, float* values);

}  // namespace cairn::kernels
