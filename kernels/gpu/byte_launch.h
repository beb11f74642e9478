// Launches of the kernels on elements and bytes, one function each, for one backend.
//
// As GpuKernels says: arguments are checked as far as the host sees them; on a problem nothing was
// launched.
#pragma once

#include "kernels/gpu/gpu_kernels.h"
#include "kernels/problem.h"
#include "kernels/simt/simt.h"

CAIRN_SIMT_BEGIN

[[nodiscard]] Problem LaunchAppend(const GpuAppend& append, const simt::LaunchTarget& target);
[[nodiscard]] Problem LaunchGather(const GpuBlockCopy& copy, const simt::LaunchTarget& target);
[[nodiscard]] Problem LaunchScatter(const GpuBlockCopy& copy, const simt::LaunchTarget& target);
[[nodiscard]] Problem LaunchQuantize(const GpuQuantize& quantize, const simt::LaunchTarget& target);
[[nodiscard]] Problem LaunchDequantize(const GpuDequantize& dequantize,
                                       const simt::LaunchTarget& target);
[[nodiscard]] Problem LaunchDigest(const GpuDigest& digest, const simt::LaunchTarget& target);

CAIRN_SIMT_END
