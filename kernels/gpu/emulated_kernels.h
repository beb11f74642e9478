// EmulatedKernels: the kernels on the grid executor of kernels/simt.
#pragma once

#include "kernels/device/emulated_device.h"
#include "kernels/gpu/gpu_kernels.h"
#include "kernels/simt/grid_executor.h"

namespace cairn::kernels {

class EmulatedKernels final : public GpuKernels {
 public:
  // Neither is owned, both outlive it. The executor's registry knows the memory that arguments
  // point to. Launches become work of the device's streams, whose failure is what a kernel did
  // wrong; without a device they run at once, and the call says it.
  EmulatedKernels(simt::emulated::GridExecutor* executor, EmulatedDevice* device)
      : executor_(executor), device_(device) {}

  Problem Attention(const GpuAttention& attention, Stream stream) override;
  Problem Append(const GpuAppend& append, Stream stream) override;
  Problem Gather(const GpuBlockCopy& copy, Stream stream) override;
  Problem Scatter(const GpuBlockCopy& copy, Stream stream) override;
  Problem Quantize(const GpuQuantize& quantize, Stream stream) override;
  Problem Dequantize(const GpuDequantize& dequantize, Stream stream) override;
  Problem DigestSegments(const GpuDigest& digest, Stream stream) override;

 private:
  simt::emulated::GridExecutor* const executor_;
  EmulatedDevice* const device_;
};

}  // namespace cairn::kernels
