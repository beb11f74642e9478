// Attention of decode queries on the device: arguments, and the plan that the host makes for them.
//
// What is computed is attention/attention.h's, with pages, queries and results in the device's
// memory. The host cuts a batch into items (attention_plan_format.h) by pure functions; the plan
// goes into a buffer of the device and is read there, so that a captured launch can be replayed
// after another plan was copied to the same place. Chunks lie at multiples that depend on a
// sequence's own length alone: a result's bits depend on its sequence and the device, not on the
// rest of the batch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention/attention.h"
#include "kernels/problem.h"

namespace cairn::kernels {

inline constexpr uint64_t kGpuChunkTokensMin = 512;
inline constexpr uint64_t kGpuChunksMax = 64;  // Of one sequence; longer ones get longer chunks.
inline constexpr uint64_t kGpuKvTokensMax = uint64_t{1} << 31;
inline constexpr uint64_t kGpuPlanItemsMax = uint64_t{1} << 26;

// Bytes of the device's memory that a batch needs.
struct GpuAttentionSizes {
  uint64_t items = 0;
  uint64_t plan_bytes = 0;
  // Zeroed by the caller once, when it has them; every launch leaves them zero.
  uint64_t counter_bytes = 0;
  uint64_t partial_bytes = 0;
};

// One launch. The shape and options are those of the plan's batch. Buffers are the caller's, of one
// launch at a time, aligned to 16 bytes.
struct GpuAttention {
  KvShape shape;
  uint32_t query_heads = 0;
  uint32_t latent_value_dim = 0;
  KvDtype query_dtype = KvDtype::kFloat32;
  float softmax_scale = 1;
  float logit_soft_cap = 0;
  // A plan does for all layers whose queries and results lie in the same buffers.
  uint64_t segment_offset = 0;
  const std::byte* plan = nullptr;
  uint32_t* counters = nullptr;
  float* partials = nullptr;
  // At least one; each works items off until none is left. sizes.items is the most that help; a
  // captured launch takes those of its largest plan.
  uint32_t blocks = 0;
};

// All but the buffers. REQUIRES: a valid batch.
GpuAttention GpuAttentionOf(const AttentionBatch& batch);

// As ValidateAttention: `sequences`, `queries` and page tables are the host's to read; regions,
// queries' and results' pointers are the device's. Also names what is beyond the bounds above.
[[nodiscard]] Problem GpuAttentionSizesOf(const AttentionBatch& batch, GpuAttentionSizes* sizes);

// Writes the plan, of `sizes.plan_bytes`, into host memory aligned to 16 bytes; on a problem (the
// above, or `plan_bytes` too few) nothing.
[[nodiscard]] Problem PlanGpuAttention(const AttentionBatch& batch, std::byte* plan,
                                       uint64_t plan_bytes);

// Which kernel a batch takes: products of 16-bit matrices for rows of whole 16 bytes and head sizes
// up to 256 (latent: keys of 576, values of 512), or the plain one of float32 for all else.
enum class GpuAttentionPath : uint32_t { kHead128, kHead256, kLatent, kPlain };
GpuAttentionPath GpuAttentionPathOf(const KvShape& shape, uint32_t latent_value_dim);

}  // namespace cairn::kernels
