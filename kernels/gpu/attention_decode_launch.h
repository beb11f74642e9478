// LaunchDecode: the decode kernels of one dtype; included by that dtype's two files.
#pragma once

#include "kernels/gpu/attention_decode_kernel.h"
#include "kernels/gpu/attention_launch.h"

CAIRN_SIMT_BEGIN

template <class Kernel>
Problem LaunchDecodeKernel(AttentionLaunch launch, const simt::LaunchTarget& target) {
  AttentionParams& params = launch.params;
  params.has_low_queries = Kernel::HasLow(params.query_dtype);
  // Fewer units at a time where a block may have less memory.
  params.stage_units = kBlockWarps;
  while (params.stage_units > 1 && Kernel::SharedBytes(params) > launch.device.shared_bytes_max) {
    params.stage_units /= 2;
  }
  const uint32_t bytes = Kernel::SharedBytes(params);
  if (bytes > launch.device.shared_bytes_max) {
    return "attention needs " + std::to_string(bytes) + " bytes of shared memory a block, the " +
           "device has " + std::to_string(launch.device.shared_bytes_max);
  }
  return simt::Launch<Kernel>(target, {launch.blocks, 1, bytes}, params);
}

template <KvDtype kDtype>
Problem LaunchDecode(const AttentionLaunch& launch, const simt::LaunchTarget& target) {
  switch (launch.path) {
    case GpuAttentionPath::kHead128:
      return LaunchDecodeKernel<DecodeKernel<kDtype, 128, 128, false>>(launch, target);
    case GpuAttentionPath::kHead256:
      return LaunchDecodeKernel<DecodeKernel<kDtype, 256, 256, false>>(launch, target);
    case GpuAttentionPath::kLatent:
      return LaunchDecodeKernel<DecodeKernel<kDtype, 576, 512, true>>(launch, target);
    case GpuAttentionPath::kPlain:
      break;
  }
  return "matrices do not take this shape";
}

CAIRN_SIMT_END
