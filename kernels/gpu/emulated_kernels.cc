#include "kernels/gpu/emulated_kernels.h"

#include <functional>
#include <utility>

#include "kernels/gpu/attention_launch.h"
#include "kernels/gpu/byte_launch.h"
#include "kernels/simt/simt.h"

namespace cairn::kernels {
namespace {

simt::LaunchTarget TargetOf(simt::emulated::GridExecutor* executor, EmulatedDevice* device,
                            Stream stream) {
  simt::LaunchTarget target;
  target.executor = executor;
  if (device != nullptr) {
    target.give = [device, stream](std::function<Problem()> work) {
      return device->Enqueue(stream, std::move(work));
    };
  }
  return target;
}

}  // namespace

Problem EmulatedKernels::Attention(const GpuAttention& attention, Stream stream) {
  return LaunchAttention(attention, TargetOf(executor_, device_, stream));
}

Problem EmulatedKernels::Append(const GpuAppend& append, Stream stream) {
  return LaunchAppend(append, TargetOf(executor_, device_, stream));
}

Problem EmulatedKernels::Gather(const GpuBlockCopy& copy, Stream stream) {
  return LaunchGather(copy, TargetOf(executor_, device_, stream));
}

Problem EmulatedKernels::Scatter(const GpuBlockCopy& copy, Stream stream) {
  return LaunchScatter(copy, TargetOf(executor_, device_, stream));
}

Problem EmulatedKernels::Quantize(const GpuQuantize& quantize, Stream stream) {
  return LaunchQuantize(quantize, TargetOf(executor_, device_, stream));
}

Problem EmulatedKernels::Dequantize(const GpuDequantize& dequantize, Stream stream) {
  return LaunchDequantize(dequantize, TargetOf(executor_, device_, stream));
}

Problem EmulatedKernels::DigestSegments(const GpuDigest& digest, Stream stream) {
  return LaunchDigest(digest, TargetOf(executor_, device_, stream));
}

}  // namespace cairn::kernels
