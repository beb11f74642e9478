// LaunchAttention: gives one GpuAttention to where a launch goes.
//
// Each dtype's kernels are compiled in a file of their own (attention_DTYPE_cuda.cu and
// attention_DTYPE_emulated.cc), the plain one and the choice in attention_plain_*.
#pragma once

#include "kernels/gpu/attention.h"
#include "kernels/gpu/attention_params.h"
#include "kernels/problem.h"
#include "kernels/simt/simt.h"

CAIRN_SIMT_BEGIN

// On a problem (blocks 0, a plan that is null, a buffer that is not aligned, a shape that is none,
// a head size or shared memory that the device does not offer) nothing was launched. What the plan
// says is believed, and that counters and partials are as large as it needs: it comes from
// PlanGpuAttention.
[[nodiscard]] Problem LaunchAttention(const GpuAttention& attention,
                                      const simt::LaunchTarget& target);

// What a device offers.
struct AttentionDevice {
  uint32_t shared_bytes_max = 0;   // Of a block.
  bool has_all_head_sizes = true;  // Or 128 and latent ones only.
};

struct AttentionLaunch {
  AttentionParams params;
  AttentionDevice device;
  GpuAttentionPath path = GpuAttentionPath::kPlain;
  uint32_t blocks = 0;
};

// One for each dtype that matrices take; `path` is not kPlain.
[[nodiscard]] Problem LaunchFloat16Attention(const AttentionLaunch& launch,
                                             const simt::LaunchTarget& target);
[[nodiscard]] Problem LaunchBfloat16Attention(const AttentionLaunch& launch,
                                              const simt::LaunchTarget& target);
[[nodiscard]] Problem LaunchFloat8Attention(const AttentionLaunch& launch,
                                            const simt::LaunchTarget& target);
[[nodiscard]] Problem LaunchInt8Attention(const AttentionLaunch& launch,
                                          const simt::LaunchTarget& target);
[[nodiscard]] Problem LaunchInt4Attention(const AttentionLaunch& launch,
                                          const simt::LaunchTarget& target);

CAIRN_SIMT_END
