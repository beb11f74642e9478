// Speed of decode attention on the device: bytes of KV read a second, beside which a driver puts
// what a kernel that only reads reaches in the same run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/gpu/gpu_rig.h"

namespace cairn::gpu_check {

struct AttentionFigure {
  std::string name;   // "bf16 g4 8x32768"
  std::string dtype;  // "bf16" or "fp8"
  uint32_t group = 0;
  uint64_t kv_bytes = 0;  // Read by one launch.
  double seconds = 0;     // Of one launch: wall clock over many, given at once.
};

// Heads of 128, 8 KV heads, pages of 16 in random order, over 256 MiB and more; `small`: a few
// kilobytes, to see that it runs.
[[nodiscard]] Problem MeasureAttention(GpuRig& rig, bool small,
                                       std::vector<AttentionFigure>* figures);

}  // namespace cairn::gpu_check
