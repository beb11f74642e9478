// Transformer: a small Llama-style model whose attention is someone else's.
//
// float32. Every row of a step is computed alone and in a fixed order, so that its bits do not
// depend on what else the step holds. Immutable, so thread-safe; the attention given to a step is
// used by that step alone while it runs. Holds no KV, samples nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/replay/model/head_shape.h"
#include "client/replay/model/layer_attention.h"
#include "client/replay/model/model_shape.h"
#include "client/replay/model/model_weights.h"

namespace cairn::replay {

// New tokens of one sequence, the first at `position`.
struct StepTokens {
  uint64_t sequence = 0;
  uint64_t position = 0;
  absl::Span<const uint32_t> tokens;
};

class Transformer {
 public:
  static constexpr uint64_t kStepTokensMax = 1 << 14;

  // As ValidateModelShape.
  static absl::StatusOr<Transformer> Make(const ModelShape& shape, uint64_t seed);

  // Logits [token][vocabulary], in the order of the batch: those after each token. INVALID_ARGUMENT
  // for a token beyond the vocabulary or too many; else what the attention said.
  absl::StatusOr<std::vector<float>> Step(absl::Span<const StepTokens> batch,
                                          LayerAttention* attention) const;

  const ModelShape& shape() const { return shape_; }
  HeadShape heads() const { return {shape_.query_heads, shape_.kv_heads, shape_.head_dim}; }
  float softmax_scale() const;

 private:
  struct Rows;  // What a step computes with, a row for each token.

  Transformer(const ModelShape& shape, uint64_t seed);

  absl::Status ValidateStep(absl::Span<const StepTokens> batch) const;
  Rows StartRows(absl::Span<const StepTokens> batch) const;
  absl::Status AttentionLayer(uint32_t layer, absl::Span<const StepTokens> batch,
                              LayerAttention* attention, Rows* rows) const;
  void FeedForwardLayer(const LayerWeights& weights, Rows* rows) const;

  ModelShape shape_;
  ModelWeights weights_;
};

}  // namespace cairn::replay
