// Attention cases on the emulated device: the kernels' own source on the grid executor, which holds
// it to what hardware leaves undefined.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/gpu/attention.h"
#include "kernels/simt/grid_executor.h"
#include "kernels/simt/launch_report.h"
#include "kernels/simt/memory_registry.h"
#include "tests/kernels/attention_case.h"

namespace cairn::kernels {

struct EmulatedRun {
  simt::emulated::LaneOrder order = simt::emulated::LaneOrder::kForward;
  uint64_t seed = 1;
  uint32_t blocks = 0;            // 0: one an item.
  uint32_t shared_bytes_max = 0;  // Of a block of the device; 0: an H200's.
};

// Memory of the device, filled with ones: NaN, and counts far off.
class DeviceBytes {
 public:
  DeviceBytes(simt::emulated::MemoryRegistry* registry, uint64_t bytes);

  std::byte* data() { return reinterpret_cast<std::byte*>(blocks_.data()); }

 private:
  struct alignas(64) Block {
    std::byte bytes[64];
  };
  std::vector<Block> blocks_;
};

// Buffers for batches of one shape up to a size, as a captured launch has them. Runs a case with
// its KV, queries and results as the device's memory. Not thread-safe.
class EmulatedAttention {
 public:
  EmulatedAttention(const GpuAttentionSizes& sizes, const EmulatedRun& run);

  // Plans the case's batch and launches it; checks that the counters are left zero.
  Problem Run(AttentionCase& a_case);
  simt::emulated::LaunchReport TakeReport() { return executor_.TakeReport(); }

 private:
  const GpuAttentionSizes sizes_;
  const EmulatedRun run_;
  simt::emulated::MemoryRegistry registry_;
  DeviceBytes plan_;
  DeviceBytes counters_;
  DeviceBytes partials_;
  simt::emulated::GridExecutor executor_;
};

// With buffers of its own.
Problem RunEmulated(AttentionCase& a_case, const EmulatedRun& run,
                    simt::emulated::LaunchReport* report);

// As implementations.
AttentionPath EmulatedGpuPath(const EmulatedRun& run = {});

}  // namespace cairn::kernels
