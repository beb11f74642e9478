#include "kernels/gpu/cuda_kernels.h"

#include "kernels/gpu/attention_launch.h"
#include "kernels/gpu/byte_launch.h"
#include "kernels/simt/simt.h"

namespace cairn::kernels {
namespace {

simt::LaunchTarget TargetOf(Stream stream) { return {static_cast<cudaStream_t>(stream.handle)}; }

}  // namespace

Problem CudaKernels::Attention(const GpuAttention& attention, Stream stream) {
  return LaunchAttention(attention, TargetOf(stream));
}

Problem CudaKernels::Append(const GpuAppend& append, Stream stream) {
  return LaunchAppend(append, TargetOf(stream));
}

Problem CudaKernels::Gather(const GpuBlockCopy& copy, Stream stream) {
  return LaunchGather(copy, TargetOf(stream));
}

Problem CudaKernels::Scatter(const GpuBlockCopy& copy, Stream stream) {
  return LaunchScatter(copy, TargetOf(stream));
}

Problem CudaKernels::Quantize(const GpuQuantize& quantize, Stream stream) {
  return LaunchQuantize(quantize, TargetOf(stream));
}

Problem CudaKernels::Dequantize(const GpuDequantize& dequantize, Stream stream) {
  return LaunchDequantize(dequantize, TargetOf(stream));
}

Problem CudaKernels::DigestSegments(const GpuDigest& digest, Stream stream) {
  return LaunchDigest(digest, TargetOf(stream));
}

}  // namespace cairn::kernels
