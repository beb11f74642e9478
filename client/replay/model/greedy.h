// Greedy decoding: prefill in chunks, one token a step, and verifying a draft.
//
// Free functions over a model and an attention; stateless. Errors are those of Transformer::Step.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/replay/model/layer_attention.h"
#include "client/replay/model/transformer.h"

namespace cairn::replay {

// The largest logit's index, the lowest of equal ones. REQUIRES: not empty.
uint32_t GreedyToken(absl::Span<const float> logits);

// By how much the largest exceeds the second. REQUIRES: at least two.
float TopMargin(absl::Span<const float> logits);

// Runs `tokens` from `position` on, at most `chunk_tokens` a step (at least 1), and gives the
// logits after the last. INVALID_ARGUMENT without any token.
absl::StatusOr<std::vector<float>> Prefill(const Transformer& model, uint64_t sequence,
                                           uint64_t position, absl::Span<const uint32_t> tokens,
                                           uint64_t chunk_tokens, LayerAttention* attention);

struct Decoded {
  std::vector<uint32_t> tokens;
  std::vector<float> last_logits;  // After all of them.
  float margin_min = 0;            // The smallest TopMargin that decided a token; 0 without any.
};

// `steps` tokens after `logits`, which follow position - 1. All of them are run, so that the
// sequence ends at position + steps.
absl::StatusOr<Decoded> DecodeGreedy(const Transformer& model, uint64_t sequence, uint64_t position,
                                     std::vector<float> logits, uint64_t steps,
                                     LayerAttention* attention);

struct Verified {
  uint64_t accepted = 0;      // Leading tokens of the draft that greedy decoding would have chosen.
  std::vector<float> logits;  // After the accepted ones.
};

// Runs a whole draft in one step. The sequence then holds all of it: truncate it to position +
// accepted. REQUIRES: a draft.
absl::StatusOr<Verified> VerifyDraft(const Transformer& model, uint64_t sequence, uint64_t position,
                                     const std::vector<float>& logits,
                                     absl::Span<const uint32_t> draft, LayerAttention* attention);

}  // namespace cairn::replay
