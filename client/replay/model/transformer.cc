#include "client/replay/model/transformer.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace cairn::replay {
namespace {

constexpr float kNormEpsilon = 1e-5f;
constexpr double kRotaryBase = 10000;

// out[0, columns) = row * matrix, summed over `in` from the first to the last.
void Multiply(const float* row, const std::vector<float>& matrix, uint64_t in, uint64_t columns,
              float* out) {
  std::fill_n(out, columns, 0.0f);
  for (uint64_t i = 0; i < in; ++i) {
    const float factor = row[i];
    const float* const weights = matrix.data() + i * columns;
    for (uint64_t j = 0; j < columns; ++j) out[j] += factor * weights[j];
  }
}

void Normalise(const float* row, const std::vector<float>& gains, float* out) {
  float sum = 0;
  for (uint64_t i = 0; i < gains.size(); ++i) sum += row[i] * row[i];
  const float factor = 1.0f / std::sqrt(sum / static_cast<float>(gains.size()) + kNormEpsilon);
  for (uint64_t i = 0; i < gains.size(); ++i) out[i] = row[i] * factor * gains[i];
}

void Add(const std::vector<float>& from, float* to) {
  for (uint64_t i = 0; i < from.size(); ++i) to[i] += from[i];
}

// Turns each pair (d, d + half) of each head by the angle of its position.
void Rotate(const float* cosines, const float* sines, uint64_t heads, uint64_t half, float* row) {
  for (uint64_t h = 0; h < heads; ++h) {
    float* const low = row + h * 2 * half;
    float* const high = low + half;
    for (uint64_t d = 0; d < half; ++d) {
      const float x = low[d];
      const float y = high[d];
      low[d] = x * cosines[d] - y * sines[d];
      high[d] = y * cosines[d] + x * sines[d];
    }
  }
}

}  // namespace

struct Transformer::Rows {
  uint64_t count = 0;
  std::vector<float> hidden;  // The residual stream.
  std::vector<float> cosines;
  std::vector<float> sines;
  std::vector<float> queries;
  std::vector<float> keys;
  std::vector<float> values;
  std::vector<float> attended;
  std::vector<float> log_sum_exp;
};

absl::StatusOr<Transformer> Transformer::Make(const ModelShape& shape, uint64_t seed) {
  if (absl::Status status = ValidateModelShape(shape); !status.ok()) return status;
  return Transformer(shape, seed);
}

Transformer::Transformer(const ModelShape& shape, uint64_t seed)
    : shape_(shape), weights_(MakeModelWeights(shape, seed)) {}

float Transformer::softmax_scale() const {
  return 1.0f / std::sqrt(static_cast<float>(shape_.head_dim));
}

absl::Status Transformer::ValidateStep(absl::Span<const StepTokens> batch) const {
  uint64_t count = 0;
  for (const StepTokens& tokens : batch) {
    count += tokens.tokens.size();
    for (uint32_t token : tokens.tokens) {
      if (token < shape_.vocabulary) continue;
      return absl::InvalidArgumentError(absl::StrCat("sequence ", tokens.sequence, ": token ",
                                                     token, " is not below the vocabulary of ",
                                                     shape_.vocabulary));
    }
  }
  if (count > kStepTokensMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("a step of ", count, " tokens; at most ", kStepTokensMax));
  }
  return absl::OkStatus();
}

Transformer::Rows Transformer::StartRows(absl::Span<const StepTokens> batch) const {
  const HeadShape heads = this->heads();
  const uint64_t half = shape_.head_dim / 2;
  Rows rows;
  for (const StepTokens& tokens : batch) {
    for (uint64_t i = 0; i < tokens.tokens.size(); ++i) {
      const auto from =
          weights_.embedding.begin() + static_cast<ptrdiff_t>(tokens.tokens[i]) * shape_.hidden;
      rows.hidden.insert(rows.hidden.end(), from, from + shape_.hidden);
      for (uint64_t d = 0; d < half; ++d) {
        const double part = static_cast<double>(d) / static_cast<double>(half);
        const double angle =
            static_cast<double>(tokens.position + i) * std::pow(kRotaryBase, -part);
        rows.cosines.push_back(static_cast<float>(std::cos(angle)));
        rows.sines.push_back(static_cast<float>(std::sin(angle)));
      }
      ++rows.count;
    }
  }
  rows.queries.resize(rows.count * heads.QueryWidth());
  rows.keys.resize(rows.count * heads.KeyWidth());
  rows.values.resize(rows.count * heads.KeyWidth());
  rows.attended.resize(rows.count * heads.QueryWidth());
  rows.log_sum_exp.resize(rows.count * heads.query_heads);
  return rows;
}

absl::Status Transformer::AttentionLayer(uint32_t layer, absl::Span<const StepTokens> batch,
                                         LayerAttention* attention, Rows* rows) const {
  const LayerWeights& weights = weights_.layers[layer];
  const HeadShape heads = this->heads();
  const uint64_t hidden = shape_.hidden;
  const uint64_t half = shape_.head_dim / 2;
  std::vector<float> normal(hidden);
  for (uint64_t r = 0; r < rows->count; ++r) {
    float* const queries = rows->queries.data() + r * heads.QueryWidth();
    float* const keys = rows->keys.data() + r * heads.KeyWidth();
    float* const values = rows->values.data() + r * heads.KeyWidth();
    Normalise(rows->hidden.data() + r * hidden, weights.attention_norm, normal.data());
    Multiply(normal.data(), weights.query, hidden, heads.QueryWidth(), queries);
    Multiply(normal.data(), weights.key, hidden, heads.KeyWidth(), keys);
    Multiply(normal.data(), weights.value, hidden, heads.KeyWidth(), values);
    const float* const cosines = rows->cosines.data() + r * half;
    const float* const sines = rows->sines.data() + r * half;
    Rotate(cosines, sines, heads.query_heads, half, queries);
    Rotate(cosines, sines, heads.kv_heads, half, keys);
  }
  std::vector<AttentionRows> asked;
  uint64_t first = 0;
  for (const StepTokens& tokens : batch) {
    asked.push_back({tokens.sequence, tokens.position, tokens.tokens.size(),
                     rows->queries.data() + first * heads.QueryWidth(),
                     rows->keys.data() + first * heads.KeyWidth(),
                     rows->values.data() + first * heads.KeyWidth(),
                     rows->attended.data() + first * heads.QueryWidth(),
                     rows->log_sum_exp.data() + first * heads.query_heads});
    first += tokens.tokens.size();
  }
  if (absl::Status status = attention->Attend(layer, asked); !status.ok()) return status;
  std::vector<float> out(hidden);
  for (uint64_t r = 0; r < rows->count; ++r) {
    Multiply(rows->attended.data() + r * heads.QueryWidth(), weights.attention_out,
             heads.QueryWidth(), hidden, out.data());
    Add(out, rows->hidden.data() + r * hidden);
  }
  return absl::OkStatus();
}

void Transformer::FeedForwardLayer(const LayerWeights& weights, Rows* rows) const {
  const uint64_t hidden = shape_.hidden;
  std::vector<float> normal(hidden);
  std::vector<float> gate(shape_.ffn);
  std::vector<float> up(shape_.ffn);
  std::vector<float> out(hidden);
  for (uint64_t r = 0; r < rows->count; ++r) {
    float* const row = rows->hidden.data() + r * hidden;
    Normalise(row, weights.ffn_norm, normal.data());
    Multiply(normal.data(), weights.gate, hidden, shape_.ffn, gate.data());
    Multiply(normal.data(), weights.up, hidden, shape_.ffn, up.data());
    for (uint64_t i = 0; i < shape_.ffn; ++i) gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
    Multiply(gate.data(), weights.down, shape_.ffn, hidden, out.data());
    Add(out, row);
  }
}

absl::StatusOr<std::vector<float>> Transformer::Step(absl::Span<const StepTokens> batch,
                                                     LayerAttention* attention) const {
  if (absl::Status status = ValidateStep(batch); !status.ok()) return status;
  Rows rows = StartRows(batch);
  for (uint32_t layer = 0; layer < shape_.layers; ++layer) {
    if (absl::Status status = AttentionLayer(layer, batch, attention, &rows); !status.ok()) {
      return status;
    }
    FeedForwardLayer(weights_.layers[layer], &rows);
  }
  std::vector<float> logits(rows.count * shape_.vocabulary);
  std::vector<float> normal(shape_.hidden);
  for (uint64_t r = 0; r < rows.count; ++r) {
    Normalise(rows.hidden.data() + r * shape_.hidden, weights_.final_norm, normal.data());
    Multiply(normal.data(), weights_.head, shape_.hidden, shape_.vocabulary,
             logits.data() + r * shape_.vocabulary);
  }
  return logits;
}

}  // namespace cairn::replay
