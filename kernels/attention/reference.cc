#include "kernels/attention/reference.h"

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/attention/visibility.h"
#include "kernels/decode_element.h"

namespace cairn::kernels {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// One KV head of one sequence.
class Head {
 public:
  Head(const AttentionBatch& batch, const AttentionSequence& sequence, uint32_t head)
      : batch_(batch), sequence_(sequence), head_(head), segment_(SegmentOf(batch.shape)) {}

  double Key(uint64_t token, uint32_t dim) const {
    return Element(token, dim, batch_.shape.key_dim, segment_.key, segment_.key_scales);
  }

  double Value(uint64_t token, uint32_t dim) const {
    if (batch_.shape.value_dim == 0) return Key(token, dim);
    return Element(token, dim, batch_.shape.value_dim, segment_.value, segment_.value_scales);
  }

 private:
  double Element(uint64_t token, uint32_t dim, uint32_t dims, uint64_t tile,
                 uint64_t scales) const {
    const KvShape& shape = batch_.shape;
    const KvPage& page = sequence_.pages[token / shape.page_tokens];
    const std::byte* bytes = SegmentAt(batch_.regions, page);
    const uint64_t row = uint64_t{head_} * shape.page_tokens + token % shape.page_tokens;
    const double code = DecodeElement(shape.dtype, bytes + tile, row * dims + dim);
    if (shape.scales == KvScales::kNone) return code;
    const uint64_t index = shape.scales == KvScales::kPerHead ? head_ : row;
    float scale;
    std::memcpy(&scale, bytes + scales + index * sizeof(float), sizeof(scale));
    return code * scale;
  }

  const AttentionBatch& batch_;
  const AttentionSequence& sequence_;
  const uint32_t head_;
  const KvSegment segment_;
};

double Logit(const AttentionBatch& batch, const Head& head, const std::vector<double>& query,
             uint64_t token) {
  double sum = 0;
  for (uint32_t d = 0; d < batch.shape.key_dim; ++d) sum += query[d] * head.Key(token, d);
  sum *= batch.softmax_scale;
  const double cap = batch.logit_soft_cap;
  return cap > 0 ? cap * std::tanh(sum / cap) : sum;
}

// One query head at one position.
void Row(const AttentionBatch& batch, const AttentionSequence& sequence,
         const AttentionQuery& query, uint32_t query_head) {
  const uint32_t group = batch.query_heads / batch.shape.kv_heads;
  const Head head(batch, sequence, query_head / group);
  const uint64_t key_dim = batch.shape.key_dim;
  std::vector<double> row(key_dim);
  for (uint64_t d = 0; d < key_dim; ++d) {
    row[d] = DecodeElement(batch.query_dtype, query.query, query_head * key_dim + d);
  }
  const Visibility seen = VisibilityOf(batch, sequence, query);
  std::vector<std::pair<uint64_t, double>> logits;
  double most = kMinusInfinity;
  for (uint64_t token = 0; token < seen.end; ++token) {
    if (!seen.Sees(token)) continue;
    logits.emplace_back(token, Logit(batch, head, row, token));
    most = std::fmax(most, logits.back().second);
  }
  const uint32_t output_dim = OutputDim(batch);
  std::vector<double> output(output_dim, 0.0);
  double sum = 0;
  for (const auto& [token, logit] : logits) {
    const double weight = std::exp(logit - most);
    sum += weight;
    for (uint32_t d = 0; d < output_dim; ++d) output[d] += weight * head.Value(token, d);
  }
  float* out = query.output + uint64_t{query_head} * output_dim;
  for (uint32_t d = 0; d < output_dim; ++d) {
    out[d] = logits.empty() ? 0.0f : static_cast<float>(output[d] / sum);
  }
  query.log_sum_exp[query_head] =
      static_cast<float>(logits.empty() ? kMinusInfinity : most + std::log(sum));
}

}  // namespace

Problem ReferenceAttention(const AttentionBatch& batch) {
  Problem problem = ValidateAttention(batch);
  if (!problem.empty()) return problem;
  for (uint64_t s = 0; s < batch.sequence_count; ++s) {
    const AttentionSequence& sequence = batch.sequences[s];
    for (uint64_t q = 0; q < sequence.query_count; ++q) {
      for (uint32_t h = 0; h < batch.query_heads; ++h) Row(batch, sequence, sequence.queries[q], h);
    }
  }
  return "";
}

}  // namespace cairn::kernels
