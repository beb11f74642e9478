// The cases that every backend must pass: kernels held against the CPU's, byte for byte, or within
// stated bounds. A case leaves nothing behind on the device.
#pragma once

#include <string>
#include <vector>

#include "kernels/problem.h"
#include "tests/gpu/gpu_rig.h"

namespace cairn::gpu_check {

struct GpuCase {
  std::string name;
  // What was wrong first, or nothing.
  Problem (*run)(GpuRig& rig);
  // Small enough for a memory checker on hardware, a hundred times slower.
  bool is_small = true;
};

std::vector<GpuCase> AppendCases();
std::vector<GpuCase> AttentionCases();
std::vector<GpuCase> BlockCopyCases();
std::vector<GpuCase> DeviceTierCases();
std::vector<GpuCase> DigestCases();
std::vector<GpuCase> PrimitiveCases();
std::vector<GpuCase> QuantizeCases();

// All of them.
std::vector<GpuCase> AllCases();

}  // namespace cairn::gpu_check
