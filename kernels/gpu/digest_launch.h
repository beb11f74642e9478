// LaunchDigest, defined. Included by the two files that compile it.
#pragma once

#include <string>

#include "kernels/gpu/byte_launch.h"
#include "kernels/gpu/digest_kernel.h"
#include "kernels/gpu/launch_checks.h"

CAIRN_SIMT_BEGIN

Problem LaunchDigest(const GpuDigest& digest, const simt::LaunchTarget& target) {
  if (digest.segment_count == 0) return "";
  if (digest.segments == nullptr || digest.digests == nullptr) {
    return "segments or digests is null";
  }
  if (digest.segment_count > uint64_t{1} << 32) {
    return "segment_count " + std::to_string(digest.segment_count) + " is above 2^32";
  }
  DigestKernel::Params params;
  params.segments = digest.segments;
  params.segment_count = digest.segment_count;
  params.counted = digest.count;
  params.digests = digest.digests;
  params.refused = digest.refused;
  simt::LaunchShape shape;
  Problem problem =
      BlocksFor(digest.segment_count * simt::kWarpLanes, DigestKernel::kThreads, &shape.blocks_x);
  if (!problem.empty()) return problem;
  return simt::Launch<DigestKernel>(target, shape, params);
}

CAIRN_SIMT_END
