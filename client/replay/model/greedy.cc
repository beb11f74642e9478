#include "client/replay/model/greedy.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace cairn::replay {

uint32_t GreedyToken(absl::Span<const float> logits) {
  CAIRN_CHECK(!logits.empty());
  return static_cast<uint32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

float TopMargin(absl::Span<const float> logits) {
  CAIRN_CHECK(logits.size() >= 2);
  float first = std::max(logits[0], logits[1]);
  float second = std::min(logits[0], logits[1]);
  for (float logit : logits.subspan(2)) {
    second = std::max(second, std::min(first, logit));
    first = std::max(first, logit);
  }
  return first - second;
}

absl::StatusOr<std::vector<float>> Prefill(const Transformer& model, uint64_t sequence,
                                           uint64_t position, absl::Span<const uint32_t> tokens,
                                           uint64_t chunk_tokens, LayerAttention* attention) {
  CAIRN_CHECK(chunk_tokens > 0);
  if (tokens.empty()) return absl::InvalidArgumentError("prefill of no tokens");
  std::vector<float> last;
  for (uint64_t begin = 0; begin < tokens.size(); begin += chunk_tokens) {
    const StepTokens step = {sequence, position + begin, tokens.subspan(begin, chunk_tokens)};
    absl::StatusOr<std::vector<float>> logits = model.Step({&step, 1}, attention);
    if (!logits.ok()) return logits.status();
    last.assign(logits->end() - model.shape().vocabulary, logits->end());
  }
  return last;
}

absl::StatusOr<Decoded> DecodeGreedy(const Transformer& model, uint64_t sequence, uint64_t position,
                                     std::vector<float> logits, uint64_t steps,
                                     LayerAttention* attention) {
  Decoded decoded;
  for (uint64_t i = 0; i < steps; ++i) {
    const float margin = TopMargin(logits);
    decoded.margin_min = i == 0 ? margin : std::min(decoded.margin_min, margin);
    decoded.tokens.push_back(GreedyToken(logits));
    const StepTokens step = {sequence, position + i, {&decoded.tokens.back(), 1}};
    absl::StatusOr<std::vector<float>> next = model.Step({&step, 1}, attention);
    if (!next.ok()) return next.status();
    logits = *std::move(next);
  }
  decoded.last_logits = std::move(logits);
  return decoded;
}

absl::StatusOr<Verified> VerifyDraft(const Transformer& model, uint64_t sequence, uint64_t position,
                                     const std::vector<float>& logits,
                                     absl::Span<const uint32_t> draft, LayerAttention* attention) {
  CAIRN_CHECK(!draft.empty());
  const StepTokens step = {sequence, position, draft};
  absl::StatusOr<std::vector<float>> all = model.Step({&step, 1}, attention);
  if (!all.ok()) return all.status();
  const auto after = [&](uint64_t accepted) {
    return accepted == 0 ? absl::MakeConstSpan(logits)
                         : absl::MakeConstSpan(*all).subspan(
                               (accepted - 1) * model.shape().vocabulary, model.shape().vocabulary);
  };
  Verified verified;
  while (verified.accepted < draft.size() &&
         GreedyToken(after(verified.accepted)) == draft[verified.accepted]) {
    ++verified.accepted;
  }
  const absl::Span<const float> last = after(verified.accepted);
  verified.logits.assign(last.begin(), last.end());
  return verified;
}

}  // namespace cairn::replay
