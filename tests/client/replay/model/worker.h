// Worker: one model with its KV in this process, for tests; CHECKs that calls succeed.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "client/replay/model/greedy.h"
#include "client/replay/model/local_attention.h"
#include "client/replay/model/model_shape.h"
#include "client/replay/model/transformer.h"
#include "common/identity/layout.h"

namespace cairn::replay {

inline constexpr uint32_t kBlockTokens = 16;
inline constexpr uint64_t kSequence = 7;
inline constexpr uint64_t kWholePrompt = 1 << 10;  // As a chunk: all of it.

std::vector<uint32_t> RandomPrompt(const ModelShape& shape, uint64_t tokens, uint64_t seed);

Transformer MakeModel(uint64_t seed, const ModelShape& shape = {});

// KV of a model, or of one of `slices` equal slices of its heads.
std::unique_ptr<LocalAttention> MakeLocal(const Transformer& model,
                                          kernels::KvDtype dtype = kernels::KvDtype::kFloat32,
                                          uint32_t slices = 1, uint64_t pages_max = 1 << 10);

// Opens kSequence, prefills and decodes.
struct Story {
  std::vector<float> prompt_logits;
  Decoded decoded;
};
Story Tell(const Transformer& model, const std::vector<uint32_t>& prompt, uint64_t chunk_tokens,
           uint64_t steps, LayerAttention* attention);

// Logits after each of `tokens`, which follow the prompt, one a step.
std::vector<std::vector<float>> Forced(const Transformer& model,
                                       const std::vector<uint32_t>& prompt,
                                       const std::vector<uint32_t>& tokens,
                                       LayerAttention* attention);

float LargestDifference(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace cairn::replay
