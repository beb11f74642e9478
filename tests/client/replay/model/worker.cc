#include "tests/client/replay/model/worker.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/check.h"

namespace cairn::replay {

std::vector<uint32_t> RandomPrompt(const ModelShape& shape, uint64_t tokens, uint64_t seed) {
  std::vector<uint32_t> prompt;
  uint64_t state = seed * 0x9e3779b97f4a7c15 + 1;
  for (uint64_t i = 0; i < tokens; ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;
    prompt.push_back(static_cast<uint32_t>((state >> 33) % shape.vocabulary));
  }
  return prompt;
}

Transformer MakeModel(uint64_t seed, const ModelShape& shape) {
  absl::StatusOr<Transformer> model = Transformer::Make(shape, seed);
  CAIRN_CHECK_OK(model.status());
  return *std::move(model);
}

std::unique_ptr<LocalAttention> MakeLocal(const Transformer& model, kernels::KvDtype dtype,
                                          uint32_t slices, uint64_t pages_max) {
  const bool is_integer = dtype == kernels::KvDtype::kInt8;
  const Layout layout = ModelLayout(model.shape(), static_cast<Dtype>(dtype),
                                    is_integer ? ScaleKind::kPerTokenAndHead : ScaleKind::kNone,
                                    kBlockTokens, slices);
  CAIRN_CHECK_OK(ValidateLayout(layout));
  LocalAttentionOptions options;
  options.shape = PageShape(layout);
  options.layers = model.shape().layers;
  options.query_heads = model.shape().query_heads / slices;
  options.softmax_scale = model.softmax_scale();
  options.pages_max = pages_max;
  absl::StatusOr<std::unique_ptr<LocalAttention>> local = LocalAttention::Make(options);
  CAIRN_CHECK_OK(local.status());
  return *std::move(local);
}

Story Tell(const Transformer& model, const std::vector<uint32_t>& prompt, uint64_t chunk_tokens,
           uint64_t steps, LayerAttention* attention) {
  absl::StatusOr<std::vector<float>> logits =
      Prefill(model, kSequence, 0, prompt, chunk_tokens, attention);
  CAIRN_CHECK_OK(logits.status());
  absl::StatusOr<Decoded> decoded =
      DecodeGreedy(model, kSequence, prompt.size(), *logits, steps, attention);
  CAIRN_CHECK_OK(decoded.status());
  return {*std::move(logits), *std::move(decoded)};
}

std::vector<std::vector<float>> Forced(const Transformer& model,
                                       const std::vector<uint32_t>& prompt,
                                       const std::vector<uint32_t>& tokens,
                                       LayerAttention* attention) {
  std::vector<std::vector<float>> all;
  absl::StatusOr<std::vector<float>> logits =
      Prefill(model, kSequence, 0, prompt, kWholePrompt, attention);
  CAIRN_CHECK_OK(logits.status());
  all.push_back(*std::move(logits));
  for (size_t i = 0; i < tokens.size(); ++i) {
    const StepTokens step = {kSequence, prompt.size() + i, {&tokens[i], 1}};
    logits = model.Step({&step, 1}, attention);
    CAIRN_CHECK_OK(logits.status());
    all.push_back(*std::move(logits));
  }
  return all;
}

float LargestDifference(const std::vector<float>& a, const std::vector<float>& b) {
  CAIRN_CHECK(a.size() == b.size());
  float most = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const float difference = std::abs(a[i] - b[i]);
    if (std::isnan(difference)) return difference;
    most = std::max(most, difference);
  }
  return most;
}

}  // namespace cairn::replay
