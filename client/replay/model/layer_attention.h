// LayerAttention, PartialAttention: who stores K and V and attends over them; the seam between a
// model and where its KV is.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace cairn::replay {

// `count` positions of one sequence, one after another. Rows are float32, keys after rotary
// positions, and belong to the caller.
struct AttentionRows {
  uint64_t sequence = 0;  // The caller's number.
  uint64_t position = 0;  // Of the first row.
  uint64_t count = 0;
  const float* queries = nullptr;  // [count][query_heads][head_dim]
  const float* keys = nullptr;     // [count][kv_heads][head_dim]; unused by PartialAttention.
  const float* values = nullptr;
  float* output = nullptr;       // [count][query_heads][head_dim]
  float* log_sum_exp = nullptr;  // [count][query_heads], natural.
};

// Stores what is new and attends over all that is stored at a row's position and before.
class LayerAttention {
 public:
  virtual ~LayerAttention() = default;

  // A batch of different sequences. After an error some of them may have the new rows of some
  // layers: whoever owns the sequences truncates them to where the step began.
  virtual absl::Status Attend(uint32_t layer, absl::Span<const AttentionRows> rows) = 0;
};

// Attends over what it holds of a sequence, and stores nothing: safe to repeat.
class PartialAttention {
 public:
  virtual ~PartialAttention() = default;

  // Output is normalised over the tokens held; rows that see none are zeros and -infinity.
  virtual absl::Status AttendStored(uint32_t layer, absl::Span<const AttentionRows> rows) = 0;
};

}  // namespace cairn::replay
