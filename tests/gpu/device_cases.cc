#include "tests/gpu/cases.h"

namespace cairn::gpu_check {

std::vector<GpuCase> DeviceTierCases() { return {}; }

}  // namespace cairn::gpu_check
