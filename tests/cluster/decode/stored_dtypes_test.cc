// Nodes that store KV in narrower forms, against a float32 worker alone with its tokens forced:
// bfloat16 within a stated tolerance at every step, and the same choice wherever the reference's
// margin says that it must be; float8 and int8 are reported.
#include <gmock/gmock.h>

#include <algorithm>
#include <iostream>

#include "tests/client/replay/model/worker.h"
#include "tests/cluster/decode/decode_fleet.h"

namespace cairn::testing {
namespace {

using replay::GreedyToken;
using replay::LargestDifference;
using replay::TopMargin;

constexpr uint64_t kSeeds = 20;
constexpr uint64_t kSteps = 100;
constexpr uint64_t kPromptTokens = 70;
constexpr uint32_t kFullBlocks = 4;
// Of logits that deviate by about 1; as for a worker alone (tests/client/replay/model).
constexpr float kBfloat16Tolerance = 0.1f;

struct Divergence {
  float most = 0;              // Difference of a logit.
  uint64_t decided = 0;        // Steps whose margin exceeds twice the tolerance.
  uint64_t wrong_decided = 0;  // Of those, with another token.
  uint64_t same = 0;           // Steps with the same token, whatever the margin.
};

class StoredDtypesTest : public DecodeFleetTest {
 protected:
  Divergence Compare(uint64_t seed, Dtype dtype, float tolerance, size_t node = 0) {
    const DecodeStory exact(seed, kPromptTokens);
    const std::vector<uint32_t> tokens = exact.cold->Decode(kSteps).value().tokens;
    const auto local = replay::MakeLocal(exact.model);
    EXPECT_TRUE(local->Open(replay::kSequence).ok());
    const auto reference = replay::Forced(exact.model, exact.tokens, tokens, local.get());

    const DecodeStory stored(seed, kPromptTokens, dtype);
    Put(stored, node);
    DecodeWorker worker(stored, parts());
    worker.Open({Wish(0, kFullBlocks, {NodeOf(node)}, kSteps + kPromptTokens)});
    const auto served = worker.Forced(tokens);
    worker.worker().Close(DecodeWorker::kSequence);
    Divergence divergence;
    EXPECT_EQ(served.size(), reference.size());
    for (size_t i = 0; i < std::min(served.size(), reference.size()); ++i) {
      divergence.most = std::max(divergence.most, LargestDifference(reference[i], served[i]));
      const bool is_same = GreedyToken(reference[i]) == GreedyToken(served[i]);
      divergence.same += is_same ? 1 : 0;
      if (TopMargin(reference[i]) <= 2 * tolerance) continue;
      ++divergence.decided;
      divergence.wrong_decided += is_same ? 0 : 1;
    }
    return divergence;
  }
};

TEST_F(StoredDtypesTest, Bfloat16IsWithinItsToleranceForTwentySeeds) {
  ASSERT_NO_FATAL_FAILURE(AddNodes(1));
  uint64_t decided = 0;
  float most = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Divergence one = Compare(seed, Dtype::kBfloat16, kBfloat16Tolerance);
    EXPECT_LE(one.most, kBfloat16Tolerance) << "seed " << seed;
    EXPECT_EQ(one.wrong_decided, 0u) << "seed " << seed;
    std::cout << "bfloat16 seed " << seed << ": logits differ by up to " << one.most << ", "
              << one.same << " of " << kSteps + 1 << " tokens the same, " << one.decided
              << " decided\n";
    decided += one.decided;
    most = std::max(most, one.most);
  }
  EXPECT_GT(most, 0.0f) << "float32 was stored";
  EXPECT_GT(decided, kSeeds * kSteps / 4);
  ExpectAllIsBack(0);
}

TEST_F(StoredDtypesTest, NarrowCodesDivergeBoundedly) {
  // One for each: a label is one namespace's.
  ASSERT_NO_FATAL_FAILURE(AddNodes(2));
  for (const Dtype dtype : {Dtype::kFloat8E4m3fn, Dtype::kInt8}) {
    const size_t node = dtype == Dtype::kInt8 ? 1 : 0;
    Divergence all;
    constexpr uint64_t kNarrowSeeds = 3;
    for (uint64_t seed = 1; seed <= kNarrowSeeds; ++seed) {
      const Divergence one = Compare(seed, dtype, 1, node);
      all.most = std::max(all.most, one.most);
      all.same += one.same;
    }
    std::cout << (dtype == Dtype::kInt8 ? "int8" : "float8") << ": logits differ by up to "
              << all.most << ", " << all.same << " of " << kNarrowSeeds * (kSteps + 1)
              << " tokens the same\n";
    EXPECT_GT(all.most, 0.0f);
    EXPECT_GT(all.same, kNarrowSeeds * kSteps / 2);
  }
}

}  // namespace
}  // namespace cairn::testing
