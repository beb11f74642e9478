// CheckAttention: one batch of attention on the device against the reference on the host.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/attention/attention.h"
#include "tests/gpu/gpu_rig.h"

namespace cairn::gpu_check {

// One sequence.
struct AttentionSpan {
  uint64_t kv_tokens = 0;
  std::vector<uint64_t> positions;  // Of its queries.
  uint64_t first_position = 0;
};

struct AttentionSetup {
  kernels::KvShape shape;
  uint32_t query_heads = 1;
  uint32_t latent_value_dim = 0;
  kernels::KvDtype query_dtype = kernels::KvDtype::kBfloat16;
  float logit_soft_cap = 0;
  uint64_t window_tokens = 0;
  uint64_t sink_tokens = 0;
  uint64_t seed = 1;
  std::vector<AttentionSpan> spans;
};

// Relative error of each row's output and its log-sum-exp; then again with three blocks, which must
// change no bit.
Problem CheckAttention(GpuRig& rig, const AttentionSetup& setup);

}  // namespace cairn::gpu_check
