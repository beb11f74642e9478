#include "kernels/gpu/attention_choice.h"

CAIRN_SIMT_BEGIN

Problem LaunchAttention(const GpuAttention& attention, const simt::LaunchTarget& target) {
  int device = 0;
  int shared_bytes = 0;
  int major = 0;
  int minor = 0;
  cudaError_t error = cudaGetDevice(&device);
  const auto ask = [&](cudaDeviceAttr attribute, int* value) {
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(value, attribute, device);
  };
  ask(cudaDevAttrMaxSharedMemoryPerBlockOptin, &shared_bytes);
  ask(cudaDevAttrComputeCapabilityMajor, &major);
  ask(cudaDevAttrComputeCapabilityMinor, &minor);
  if (error != cudaSuccess) {
    return std::string("the device could not be asked what it offers: ") +
           cudaGetErrorString(error);
  }
  AttentionDevice facts;
  facts.shared_bytes_max = static_cast<uint32_t>(shared_bytes);
  facts.has_all_head_sizes = major == 9 && minor == 0;
  return LaunchChosen(attention, facts, target);
}

CAIRN_SIMT_END
