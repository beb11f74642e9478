#include "client/replay/model/model_weights.h"

#include <cmath>

#include "client/replay/block_token.h"

namespace cairn::replay {
namespace {

// Which matrix numbers are for: each has a stream of its own.
enum class Matrix : uint64_t {
  kEmbedding = 1,
  kHead,
  kQuery,
  kKey,
  kValue,
  kAttentionOut,
  kGate,
  kUp,
  kDown,
};

// Attention decides by content and position: logits of queries and keys deviate by about this
// squared, and what it reads weighs as much as the token itself. With flat attention of small
// weight the next token is a function of the last, and decoding runs into a short loop.
constexpr double kQueryKeyGain = 1.6;
constexpr double kAttentionGain = 2.0;

// The sum of four 16-bit numbers, about 0 and with deviation 1 once scaled: near enough to normal.
constexpr int64_t kFourMeans = 2 * 65535;
constexpr double kFourDeviation = 65536.0 / 1.7320508075688772;

std::vector<float> Normal(uint64_t seed, Matrix matrix, uint64_t layer, uint64_t count,
                          double deviation) {
  uint64_t state = SplitMix64(SplitMix64(seed) ^ (static_cast<uint64_t>(matrix) << 32 | layer));
  const float scale = static_cast<float>(deviation / kFourDeviation);
  std::vector<float> numbers(count);
  for (float& number : numbers) {
    const uint64_t bits = SplitMix64(state);
    state += kSplitMixStep;
    const uint64_t sum =
        (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
    number = static_cast<float>(static_cast<int64_t>(sum) - kFourMeans) * scale;
  }
  return numbers;
}

LayerWeights MakeLayer(const ModelShape& shape, uint64_t seed, uint64_t layer) {
  const uint64_t hidden = shape.hidden;
  const uint64_t queries = uint64_t{shape.query_heads} * shape.head_dim;
  const uint64_t keys = uint64_t{shape.kv_heads} * shape.head_dim;
  const double of_hidden = 1 / std::sqrt(static_cast<double>(hidden));
  const double of_queries = 1 / std::sqrt(static_cast<double>(queries));
  const double of_ffn = 1 / std::sqrt(static_cast<double>(shape.ffn));
  LayerWeights weights;
  weights.attention_norm.assign(hidden, 1.0f);
  weights.ffn_norm.assign(hidden, 1.0f);
  weights.query = Normal(seed, Matrix::kQuery, layer, hidden * queries, kQueryKeyGain * of_hidden);
  weights.key = Normal(seed, Matrix::kKey, layer, hidden * keys, kQueryKeyGain * of_hidden);
  weights.value = Normal(seed, Matrix::kValue, layer, hidden * keys, of_hidden);
  weights.attention_out =
      Normal(seed, Matrix::kAttentionOut, layer, queries * hidden, kAttentionGain * of_queries);
  weights.gate = Normal(seed, Matrix::kGate, layer, hidden * shape.ffn, of_hidden);
  weights.up = Normal(seed, Matrix::kUp, layer, hidden * shape.ffn, of_hidden);
  weights.down = Normal(seed, Matrix::kDown, layer, uint64_t{shape.ffn} * hidden, of_ffn);
  return weights;
}

}  // namespace

ModelWeights MakeModelWeights(const ModelShape& shape, uint64_t seed) {
  const uint64_t hidden = shape.hidden;
  const double of_hidden = 1 / std::sqrt(static_cast<double>(hidden));
  ModelWeights weights;
  weights.embedding = Normal(seed, Matrix::kEmbedding, 0, shape.vocabulary * hidden, 1);
  for (uint64_t layer = 0; layer < shape.layers; ++layer) {
    weights.layers.push_back(MakeLayer(shape, seed, layer));
  }
  weights.final_norm.assign(hidden, 1.0f);
  weights.head = Normal(seed, Matrix::kHead, 0, hidden * shape.vocabulary, of_hidden);
  return weights;
}

}  // namespace cairn::replay
