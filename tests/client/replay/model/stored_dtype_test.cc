// KV in narrower forms against float32 with float32's tokens forced: bfloat16 within a stated
// tolerance, and its own choice the same wherever the margin says that it must be; float8 and int8
// are reported.
#include <gmock/gmock.h>

#include <algorithm>
#include <iostream>

#include "common/base/check.h"
#include "tests/client/replay/model/worker.h"

namespace cairn::replay {
namespace {

constexpr uint64_t kSeeds = 20;
constexpr uint64_t kSteps = 24;
constexpr uint64_t kPromptTokens = 40;
// Of logits that deviate by about 1.
constexpr float kBfloat16Tolerance = 0.1f;

struct Divergence {
  float most = 0;              // Difference of a logit.
  uint64_t decided = 0;        // Steps whose margin exceeds twice the tolerance.
  uint64_t wrong_decided = 0;  // Of those, with another token.
  uint64_t same = 0;           // Steps with the same token, whatever the margin.
};

Divergence Compare(uint64_t seed, kernels::KvDtype dtype, float tolerance) {
  const Transformer model = MakeModel(seed);
  const std::vector<uint32_t> prompt = RandomPrompt(model.shape(), kPromptTokens, seed);
  const auto exact = MakeLocal(model);
  CAIRN_CHECK_OK(exact->Open(kSequence));
  const std::vector<uint32_t> tokens =
      Tell(model, prompt, kWholePrompt, kSteps, exact.get()).decoded.tokens;
  CAIRN_CHECK_OK(exact->Truncate(kSequence, 0));
  const auto narrow = MakeLocal(model, dtype);
  CAIRN_CHECK_OK(narrow->Open(kSequence));
  const auto reference = Forced(model, prompt, tokens, exact.get());
  const auto stored = Forced(model, prompt, tokens, narrow.get());
  Divergence divergence;
  for (size_t i = 0; i < reference.size(); ++i) {
    divergence.most = std::max(divergence.most, LargestDifference(reference[i], stored[i]));
    const bool is_same = GreedyToken(reference[i]) == GreedyToken(stored[i]);
    divergence.same += is_same;
    if (TopMargin(reference[i]) <= 2 * tolerance) continue;
    ++divergence.decided;
    divergence.wrong_decided += !is_same;
  }
  return divergence;
}

TEST(StoredDtypeTest, Bfloat16IsWithinItsToleranceForTwentySeeds) {
  Divergence all;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Divergence one = Compare(seed, kernels::KvDtype::kBfloat16, kBfloat16Tolerance);
    EXPECT_LE(one.most, kBfloat16Tolerance) << "seed " << seed;
    EXPECT_EQ(one.wrong_decided, 0u) << "seed " << seed;
    std::cout << "bfloat16 seed " << seed << ": logits differ by up to " << one.most << ", "
              << one.same << " of " << kSteps + 1 << " tokens the same, " << one.decided
              << " decided\n";
    all.decided += one.decided;
    all.most = std::max(all.most, one.most);
  }
  EXPECT_GT(all.most, 0.0f);
  EXPECT_GT(all.decided, kSeeds * kSteps / 4);
}

TEST(StoredDtypeTest, NarrowCodesDivergeBoundedly) {
  for (kernels::KvDtype dtype : {kernels::KvDtype::kFloat8E4m3fn, kernels::KvDtype::kInt8}) {
    Divergence all;
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      const Divergence one = Compare(seed, dtype, 1);
      all.most = std::max(all.most, one.most);
      all.same += one.same;
    }
    std::cout << kernels::NameOf(dtype) << ": logits differ by up to " << all.most << ", "
              << all.same << " of " << 5 * (kSteps + 1) << " tokens the same\n";
    EXPECT_GT(all.most, 0.0f);
    EXPECT_GT(all.same, 5 * kSteps / 2);
  }
}

}  // namespace
}  // namespace cairn::replay
