// Probes: what single primitives of kernels/simt give, thread by thread, so that those of a device
// can be held against the portable ones before any kernel is.
#pragma once

#include <cstdint>

#include "kernels/device/device.h"
#include "kernels/problem.h"

namespace cairn::gpu_check {

enum class ProbeKind : uint32_t {
  kPlaces,
  kShuffles,
  kVotes,
  kCopies,
  kLoadMatrix,
  kLoadMatrixTransposed,
  kMultiplyBfloat16,
  kMultiplyFloat16,
  kDecodeBfloat16,
  kDecodeFloat16,
  kPack,
  kExactNumbers,
  kNearNumbers,  // Floats that agree within 1e-6 of their size; all others agree in bits.
  kCount,
};

inline constexpr uint32_t kProbeThreads = 128;
inline constexpr uint32_t kProbeBlocks = 2;
inline constexpr uint32_t kProbeWords = 8;  // That each thread reads and writes.

struct ProbeParams {
  ProbeKind kind = ProbeKind::kPlaces;
  const uint32_t* in = nullptr;  // [blocks][threads][words], as `out`.
  uint32_t* out = nullptr;
};

using LaunchProbe = kernels::Problem (*)(const ProbeParams& params, kernels::Stream stream);

}  // namespace cairn::gpu_check
