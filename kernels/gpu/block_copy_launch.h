// LaunchGather and LaunchScatter, defined. Included by the two files that compile them.
#pragma once

#include <string>

#include "kernels/gpu/block_copy_kernel.h"
#include "kernels/gpu/byte_launch.h"
#include "kernels/gpu/launch_checks.h"
#include "kernels/kv_segment.h"

CAIRN_SIMT_BEGIN

inline bool AreScalesAligned(const EngineScales& scales) {
  return IsMultiple(scales.base, sizeof(float)) && scales.block_stride % sizeof(float) == 0 &&
         scales.head_stride % sizeof(float) == 0 && scales.token_stride % sizeof(float) == 0;
}

inline Problem CheckBlockCopy(const BlockCopy& copy) {
  Problem problem = ValidateShape(copy.shape);
  if (problem.empty()) problem = ValidateEngineTensor(copy.shape, copy.tensor);
  if (!problem.empty() || copy.place_count == 0) return problem;
  if (copy.places == nullptr || copy.regions == nullptr) return "places or regions is null";
  if (copy.segment_offset % kTileAlignBytes != 0) {
    return "segment_offset " + std::to_string(copy.segment_offset) + " is no multiple of 64";
  }
  if (copy.place_count > kBlocksXMax) {
    return "place_count " + std::to_string(copy.place_count) + " is more than a grid takes";
  }
  if (copy.shape.scales != KvScales::kNone &&
      (!AreScalesAligned(copy.tensor.key_scales) ||
       (copy.shape.value_dim != 0 && !AreScalesAligned(copy.tensor.value_scales)))) {
    return "the engine's scales do not lie at multiples of 4 bytes";
  }
  return "";
}

// Whether all rows begin at multiples of `bytes` and are as long.
inline bool MovesBy(const BlockCopy& copy, uint64_t bytes) {
  const EngineTensor& tensor = copy.tensor;
  const uint64_t key_bytes = RowBytes(copy.shape.dtype, copy.shape.key_dim);
  const uint64_t value_bytes = RowBytes(copy.shape.dtype, copy.shape.value_dim);
  for (const uint64_t stride : {tensor.block_stride, tensor.head_stride, tensor.token_stride,
                                tensor.key_offset, key_bytes, value_bytes}) {
    if (stride % bytes != 0) return false;
  }
  return IsMultiple(tensor.base, bytes) &&
         (copy.shape.value_dim == 0 || tensor.value_offset % bytes == 0);
}

template <uint32_t kUnitBytes>
typename BlockCopyKernel<kUnitBytes>::Params BlockCopyParams(const GpuBlockCopy& call,
                                                             bool gathers) {
  const BlockCopy& copy = call.copy;
  const KvShape& shape = copy.shape;
  const EngineTensor& tensor = copy.tensor;
  const KvSegment segment = SegmentOf(shape);
  typename BlockCopyKernel<kUnitBytes>::Params params;
  params.segments = {copy.regions,  copy.region_count, copy.segment_offset,
                     segment.bytes, nullptr,           0};
  params.places = copy.places;
  params.place_count = copy.place_count;
  params.counted = call.place_count;
  params.blocks = tensor.blocks;
  params.block_stride = tensor.block_stride;
  params.head_stride = tensor.head_stride;
  params.token_stride = tensor.token_stride;
  params.kv_heads = shape.kv_heads;
  params.page_tokens = shape.page_tokens;
  if (shape.scales != KvScales::kNone) {
    params.head_scales = shape.scales == KvScales::kPerHead ? 1 : shape.page_tokens;
  }
  params.gathers = gathers;
  params.refused = call.refused;
  const auto put_scales = [](const EngineScales& scales, MovedPart* part) {
    part->scales = scales.base;
    part->scale_block_stride = scales.block_stride;
    part->scale_head_stride = scales.head_stride;
    part->scale_token_stride = scales.token_stride;
  };
  MovedPart& keys = params.part[0];
  keys.rows = tensor.base + tensor.key_offset;
  keys.row_units = static_cast<uint32_t>(RowBytes(shape.dtype, shape.key_dim) / kUnitBytes);
  keys.tile = segment.key;
  keys.tile_end = segment.key + segment.key_bytes;
  keys.padded_end = segment.value_scales;
  keys.stored_scales = segment.key_scales;
  keys.stored_scales_end = segment.key_scales + segment.key_scales_bytes;
  put_scales(tensor.key_scales, &keys);
  MovedPart& values = params.part[1];
  values.rows = tensor.base + tensor.value_offset;
  values.row_units = static_cast<uint32_t>(RowBytes(shape.dtype, shape.value_dim) / kUnitBytes);
  values.tile = segment.value;
  values.tile_end = segment.value + segment.value_bytes;
  values.padded_end = segment.bytes;
  values.stored_scales = segment.value_scales;
  values.stored_scales_end = segment.value_scales + segment.value_scales_bytes;
  put_scales(tensor.value_scales, &values);
  return params;
}

template <uint32_t kUnitBytes>
Problem LaunchBlockCopyBy(const GpuBlockCopy& call, bool gathers,
                          const simt::LaunchTarget& target) {
  const KvShape& shape = call.copy.shape;
  simt::LaunchShape grid;
  grid.blocks_x = static_cast<uint32_t>(call.copy.place_count);
  grid.blocks_y = shape.kv_heads * (shape.value_dim != 0 ? 2 : 1);
  return simt::Launch<BlockCopyKernel<kUnitBytes>>(target, grid,
                                                   BlockCopyParams<kUnitBytes>(call, gathers));
}

inline Problem LaunchBlockCopy(const GpuBlockCopy& call, bool gathers,
                               const simt::LaunchTarget& target) {
  Problem problem = CheckBlockCopy(call.copy);
  if (!problem.empty() || call.copy.place_count == 0) return problem;
  if (MovesBy(call.copy, 16)) return LaunchBlockCopyBy<16>(call, gathers, target);
  if (MovesBy(call.copy, 4)) return LaunchBlockCopyBy<4>(call, gathers, target);
  return LaunchBlockCopyBy<1>(call, gathers, target);
}

Problem LaunchGather(const GpuBlockCopy& copy, const simt::LaunchTarget& target) {
  return LaunchBlockCopy(copy, true, target);
}

Problem LaunchScatter(const GpuBlockCopy& copy, const simt::LaunchTarget& target) {
  return LaunchBlockCopy(copy, false, target);
}

CAIRN_SIMT_END
