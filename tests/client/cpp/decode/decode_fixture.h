// DecodeTest: a prompt with random KV, nodes that hold any of its blocks, and what attention over
// all of it gives.
#pragma once

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "client/cpp/decode/row_sizes.h"
#include "common/base/check.h"
#include "common/identity/block_hasher.h"
#include "tests/client/cpp/decode/fake_holder.h"
#include "tests/client/cpp/fake_wait.h"
#include "tests/client/cpp/sample_blocks.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/seeded_random.h"

namespace cairn::testing {

// float32, two slices of one head of 8, two layers, blocks of 4 tokens.
inline Namespace DecodeNamespace() {
  Namespace fields = SampleNamespace();
  fields.layout.block_tokens = 4;
  fields.layout.slices = 2;
  Group& group = fields.layout.groups[0];
  group.kv_heads = 2;
  group.key_dim = group.value_dim = 8;
  group.dtype = Dtype::kFloat32;
  return fields;
}

class DecodeTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kBlocks = 6;
  static constexpr uint32_t kBlockTokens = 4;
  static constexpr uint64_t kPromptTokens = kBlocks * kBlockTokens;
  static constexpr uint32_t kQueryHeads = 4;
  static constexpr uint32_t kDim = 8;

  DecodeTest() {
    parameters_.set_query_heads(kQueryHeads);
    parameters_.set_row_dtype(3);
    parameters_.set_softmax_scale(0.5f);
    sizes_ = RowSizesOf(handle_.payload_map(), parameters_).value();
    tokens_.resize(kPromptTokens);
    for (size_t i = 0; i < tokens_.size(); ++i) tokens_[i] = static_cast<uint32_t>(i);
    for (uint32_t i = 0; i < kBlocks; ++i) {
      // Padding stays zero: none in this layout, whose tiles are whole lines.
      const std::string bytes = Floats(handle_.block_bytes() / sizeof(float));
      blocks_.emplace_back(bytes.begin(), bytes.end());
    }
  }

  ClientParts parts() { return {&hasher_, &clock_, &random_, &wait_}; }

  Prompt MakePrompt() {
    const Region region{.scope = {"acme", "", ""}, .tokens = tokens_, .external_ids = {}};
    return Prompt::Make(hasher_, handle_, {&region, 1}).value();
  }

  // A node with blocks [begin, end) of the prompt.
  FakeHolder* Holder(uint32_t begin = 0, uint32_t end = kBlocks) {
    holders_.push_back(std::make_unique<FakeHolder>(handle_, parts()));
    FakeHolder* const holder = holders_.back().get();
    const Prompt prompt = MakePrompt();
    for (uint32_t i = begin; i < end; ++i) holder->cache.AddBlock(prompt.keys()[i], blocks_[i]);
    return holder;
  }

  // The whole prompt as one sequence that answers by itself.
  FakeSequence Whole(uint64_t reserve_tokens = 0) const {
    FakeSequence whole(&handle_.payload_map(), 0);
    for (const auto& block : blocks_) whole.Pin(std::string(block.begin(), block.end()));
    whole.Reserve(reserve_tokens);
    return whole;
  }

  // Random float32 numbers, as bytes.
  std::string Floats(uint64_t count) {
    std::normal_distribution<float> normal;
    std::string bytes;
    for (uint64_t i = 0; i < count; ++i) {
      const float value = normal(generator_);
      bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
    }
    return bytes;
  }
  std::string Rows(uint64_t row_bytes, uint64_t rows) {
    return Floats(row_bytes * rows / sizeof(float));
  }

  static std::vector<float> FloatsOf(const std::string& bytes) {
    std::vector<float> floats(bytes.size() / sizeof(float));
    std::memcpy(floats.data(), bytes.data(), bytes.size());
    return floats;
  }

  static void ExpectNear(const std::vector<float>& got, const std::vector<float>& want) {
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-5) << "at " << i;
  }

  NamespaceHandle handle_ = HandleOf(DecodeNamespace());
  v1::AttentionParameters parameters_;
  RowSizes sizes_;
  FakeClock clock_;
  FakeWait wait_{&clock_};
  SeededRandom random_{7};
  Sha256BlockHasher hasher_;
  std::mt19937 generator_{11};
  std::vector<uint32_t> tokens_;
  std::vector<std::vector<uint8_t>> blocks_;
  std::vector<std::unique_ptr<FakeHolder>> holders_;  // Outlive sessions and streams.
};

}  // namespace cairn::testing
