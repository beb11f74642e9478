// ModelWeights: the weights of a small model, from a seed.
//
// The same seed and shape give the same bits on every machine: numbers come from splitmix64 through
// integers, one conversion and one multiplication. Matrices are [in][out]. Immutable once made.
#pragma once

#include <cstdint>
#include <vector>

#include "client/replay/model/model_shape.h"

namespace cairn::replay {

struct LayerWeights {
  std::vector<float> attention_norm;  // [hidden]
  std::vector<float> query;           // [hidden][query_heads * head_dim]
  std::vector<float> key;             // [hidden][kv_heads * head_dim]
  std::vector<float> value;
  std::vector<float> attention_out;  // [query_heads * head_dim][hidden]
  std::vector<float> ffn_norm;       // [hidden]
  std::vector<float> gate;           // [hidden][ffn]
  std::vector<float> up;
  std::vector<float> down;  // [ffn][hidden]
};

struct ModelWeights {
  std::vector<float> embedding;  // [vocabulary][hidden]
  std::vector<LayerWeights> layers;
  std::vector<float> final_norm;  // [hidden]
  std::vector<float> head;        // [hidden][vocabulary]; not the embedding's.
};

// REQUIRES: a valid shape.
ModelWeights MakeModelWeights(const ModelShape& shape, uint64_t seed);

}  // namespace cairn::replay
