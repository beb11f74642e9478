// Attention of decode queries over paged KV of one layer: the arguments, common to the CPU paths,
// the reference and CUDA.
//
// Plain values that own nothing; pointers are to host memory for the CPU paths. Output is float32;
// log-sum-exp is natural and float32. A row that sees no token is zeros and -inf, so partial
// results merge exactly (merge.h). An attention sink that is a logit (not a token) is a partial
// result of zeros and that logit.
#pragma once

#include <cstdint>

#include "kernels/kv_pages.h"
#include "kernels/kv_segment.h"
#include "kernels/problem.h"

namespace cairn::kernels {

// All query heads at one position. It sees stored tokens at its position and before.
struct AttentionQuery {
  uint64_t position = 0;         // Within its sequence.
  const void* query = nullptr;   // [query_heads][key_dim]
  float* output = nullptr;       // [query_heads][output dim]
  float* log_sum_exp = nullptr;  // [query_heads]
};

// Queries over one run of stored tokens: the new positions of a sequence, which are causal among
// themselves, or queries of many callers over a prefix that they share. Its KV is read once for all
// of them.
struct AttentionSequence {
  const KvPage* pages = nullptr;  // May be shuffled, and shared with others.
  uint64_t page_count = 0;
  uint64_t kv_tokens = 0;       // Stored tokens, from the start of pages[0].
  uint64_t first_position = 0;  // Of the first stored token.
  const AttentionQuery* queries = nullptr;
  uint64_t query_count = 0;
};

// Query head h reads KV head h / (query_heads / kv_heads).
struct AttentionBatch {
  KvShape shape;
  uint32_t query_heads = 0;       // A multiple of kv_heads.
  uint32_t latent_value_dim = 0;  // With shape.value_dim 0: how much of each key is its value.
  KvDtype query_dtype = KvDtype::kFloat32;  // A float of 16 or 32 bits.
  float softmax_scale = 1;
  float logit_soft_cap = 0;    // c > 0: logits become c * tanh(logit / c). 0: none.
  uint64_t window_tokens = 0;  // w > 0: a query sees its own position and the w - 1 before, and
  uint64_t sink_tokens = 0;    // those of the first sink_tokens positions. 0: all.
  KvRegions regions;
  const AttentionSequence* sequences = nullptr;
  uint64_t sequence_count = 0;
};

inline constexpr uint32_t kQueriesPerKvHeadMax = 1 << 16;  // Queries times heads of a group.
inline constexpr uint64_t kKvTokensMax = uint64_t{1} << 40;
inline constexpr uint32_t kQueryHeadsMax = 1 << 14;

// Columns of the output.
constexpr uint32_t OutputDim(const AttentionBatch& batch) {
  return batch.shape.value_dim == 0 ? batch.latent_value_dim : batch.shape.value_dim;
}

// Names the sequence, the field and the value of the first thing that is wrong: shapes, pointers,
// lengths that the page table does not cover, pages outside their regions, numbers that are not
// finite. Reads no query and no KV. Pages that no query sees (behind the window) are not looked at
// and may be anything.
[[nodiscard]] Problem ValidateAttention(const AttentionBatch& batch);

}  // namespace cairn::kernels
