// CudaKernels: the kernels on a device, by the CUDA runtime. Built where there is an nvcc.
#pragma once

#include "kernels/gpu/gpu_kernels.h"

namespace cairn::kernels {

// On the device that is current to the calling thread, whose streams are given. A null stream is
// the default one. What a kernel does wrong is said by whoever waits for the stream.
class CudaKernels final : public GpuKernels {
 public:
  Problem Attention(const GpuAttention& attention, Stream stream) override;
  Problem Append(const GpuAppend& append, Stream stream) override;
  Problem Gather(const GpuBlockCopy& copy, Stream stream) override;
  Problem Scatter(const GpuBlockCopy& copy, Stream stream) override;
  Problem Quantize(const GpuQuantize& quantize, Stream stream) override;
  Problem Dequantize(const GpuDequantize& dequantize, Stream stream) override;
  Problem DigestSegments(const GpuDigest& digest, Stream stream) override;
};

}  // namespace cairn::kernels
