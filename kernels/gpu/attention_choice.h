// LaunchAttention, defined: parameters out of arguments, and which kernel. Included by the two
// files that compile the plain kernel.
#pragma once

#include "kernels/gpu/attention_launch.h"
#include "kernels/gpu/attention_plain_kernel.h"

CAIRN_SIMT_BEGIN

inline AttentionParams AttentionParamsOf(const GpuAttention& attention) {
  const KvShape& shape = attention.shape;
  const KvSegment segment = SegmentOf(shape);
  AttentionParams params;
  params.plan = attention.plan;
  params.counters = attention.counters;
  params.partials = attention.partials;
  params.segment_offset = attention.segment_offset;
  params.key_offset = segment.key;
  params.value_offset = segment.value;
  params.key_scales_offset = segment.key_scales;
  params.value_scales_offset = segment.value_scales;
  params.page_tokens = shape.page_tokens;
  params.key_dim = shape.key_dim;
  params.value_dim = shape.value_dim == 0 ? attention.latent_value_dim : shape.value_dim;
  params.key_row_bytes = static_cast<uint32_t>(RowBytes(shape.dtype, shape.key_dim));
  params.value_row_bytes = static_cast<uint32_t>(RowBytes(shape.dtype, shape.value_dim));
  params.group_heads = attention.query_heads / shape.kv_heads;
  params.dtype = shape.dtype;
  params.query_dtype = attention.query_dtype;
  params.scales = shape.scales;
  params.softmax_scale = attention.softmax_scale;
  params.soft_cap = attention.logit_soft_cap;
  return params;
}

inline Problem CheckLaunch(const GpuAttention& attention) {
  const Problem problem = ValidateShape(attention.shape);
  if (!problem.empty()) return problem;
  if (attention.query_heads == 0 || attention.query_heads % attention.shape.kv_heads != 0) {
    return "query_heads " + std::to_string(attention.query_heads) +
           " is not a multiple of kv_heads " + std::to_string(attention.shape.kv_heads);
  }
  const uint32_t latent = attention.latent_value_dim;
  const uint32_t key_dim = attention.shape.key_dim;
  if (attention.shape.value_dim == 0 ? latent < 2 || latent > key_dim || latent % 2 != 0
                                     : latent != 0) {
    return "latent_value_dim " + std::to_string(latent) + " does not go with key_dim " +
           std::to_string(key_dim) + " and value_dim " + std::to_string(attention.shape.value_dim);
  }
  if (attention.plan == nullptr) return "plan is null";
  for (const void* buffer :
       {static_cast<const void*>(attention.plan), static_cast<const void*>(attention.counters),
        static_cast<const void*>(attention.partials)}) {
    if (reinterpret_cast<uintptr_t>(buffer) % 16 == 0) continue;
    return "plan, counters or partials are not aligned to 16 bytes";
  }
  if (attention.blocks == 0) return "blocks is 0";
  return "";
}

inline Problem LaunchPlainAttention(const AttentionLaunch& launch,
                                    const simt::LaunchTarget& target) {
  const uint32_t bytes = PlainAttentionKernel::SharedBytes(launch.params);
  if (bytes > launch.device.shared_bytes_max) {
    return "heads of " + std::to_string(launch.params.key_dim) + " and " +
           std::to_string(launch.params.value_dim) + " need " + std::to_string(bytes) +
           " bytes of shared memory a block, the device has " +
           std::to_string(launch.device.shared_bytes_max);
  }
  return simt::Launch<PlainAttentionKernel>(target, {launch.blocks, 1, bytes}, launch.params);
}

inline Problem LaunchChosen(const GpuAttention& attention, const AttentionDevice& device,
                            const simt::LaunchTarget& target) {
  const Problem problem = CheckLaunch(attention);
  if (!problem.empty()) return problem;
  AttentionLaunch launch;
  launch.params = AttentionParamsOf(attention);
  launch.device = device;
  launch.path = GpuAttentionPathOf(attention.shape, attention.latent_value_dim);
  launch.blocks = attention.blocks;
  if (launch.path == GpuAttentionPath::kPlain) return LaunchPlainAttention(launch, target);
  if (launch.path == GpuAttentionPath::kHead256 && !device.has_all_head_sizes) {
    return "heads of " + std::to_string(attention.shape.key_dim) + " and " +
           std::to_string(attention.shape.value_dim) +
           " are compiled for compute capability 9.0 only, up to 128 for others";
  }
  switch (attention.shape.dtype) {
    case KvDtype::kFloat16:
      return LaunchFloat16Attention(launch, target);
    case KvDtype::kBfloat16:
      return LaunchBfloat16Attention(launch, target);
    case KvDtype::kFloat8E4m3fn:
      return LaunchFloat8Attention(launch, target);
    case KvDtype::kInt8:
      return LaunchInt8Attention(launch, target);
    case KvDtype::kInt4:
      return LaunchInt4Attention(launch, target);
    case KvDtype::kFloat32:
      break;
  }
  return "float32 takes the plain kernel";
}

CAIRN_SIMT_END
