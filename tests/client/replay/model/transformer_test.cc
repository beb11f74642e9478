// A model of a seed: the same numbers everywhere, tokens that vary, rows that do not depend on what
// else a step holds, and refusals that name what was wrong.
#include "client/replay/model/transformer.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/client/replay/model/worker.h"

namespace cairn::replay {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kSeeds = 20;
constexpr uint64_t kSteps = 64;

// The shortest period with which the last half of the tokens repeats; 0: none up to half of that.
size_t PeriodAtEnd(const std::vector<uint32_t>& tokens) {
  const size_t half = tokens.size() / 2;
  for (size_t period = 1; period <= half / 2; ++period) {
    const auto begin = tokens.end() - static_cast<ptrdiff_t>(half);
    if (std::equal(begin + static_cast<ptrdiff_t>(period), tokens.end(), begin)) return period;
  }
  return 0;
}

TEST(TransformerTest, WeightsAreNormalEnoughAndOfTheSeedAlone) {
  const ModelWeights weights = MakeModelWeights({}, 1);
  EXPECT_EQ(weights.embedding, MakeModelWeights({}, 1).embedding);
  EXPECT_NE(weights.embedding, MakeModelWeights({}, 2).embedding);
  EXPECT_NE(weights.layers[0].query, weights.layers[1].query);
  double sum = 0;
  double squares = 0;
  for (float number : weights.embedding) {
    sum += number;
    squares += double{number} * number;
  }
  const auto count = static_cast<double>(weights.embedding.size());
  EXPECT_NEAR(sum / count, 0, 0.02);
  EXPECT_NEAR(squares / count, 1, 0.02);
}

TEST(TransformerTest, TwentySeedsGiveVariedTokens) {
  std::set<std::vector<uint32_t>> stories;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Transformer model = MakeModel(seed);
    const auto local = MakeLocal(model);
    ASSERT_TRUE(local->Open(kSequence).ok());
    const Story story =
        Tell(model, RandomPrompt(model.shape(), 24, seed), kWholePrompt, kSteps, local.get());
    std::map<uint32_t, uint64_t> counts;
    for (uint32_t token : story.decoded.tokens) ++counts[token];
    uint64_t most = 0;
    for (const auto& [token, count] : counts) most = std::max(most, count);
    std::cout << "seed " << seed << ": " << counts.size() << " different tokens of " << kSteps
              << ", one up to " << most << " times, period at the end "
              << PeriodAtEnd(story.decoded.tokens) << "\n";
    EXPECT_GE(counts.size(), kSteps / 4) << "seed " << seed;
    EXPECT_EQ(PeriodAtEnd(story.decoded.tokens), 0u) << "seed " << seed;
    EXPECT_LE(most, kSteps / 8) << "seed " << seed;
    stories.insert(story.decoded.tokens);
  }
  EXPECT_EQ(stories.size(), kSeeds);
}

TEST(TransformerTest, ATokenLongAgoChangesWhatComes) {
  const Transformer model = MakeModel(3);
  std::vector<uint32_t> prompt = RandomPrompt(model.shape(), 64, 3);
  const auto local = MakeLocal(model);
  ASSERT_TRUE(local->Open(kSequence).ok());
  const Story story = Tell(model, prompt, kWholePrompt, 32, local.get());
  prompt[1] = (prompt[1] + 1) % model.shape().vocabulary;
  ASSERT_TRUE(local->Truncate(kSequence, 0).ok());
  const Story other = Tell(model, prompt, kWholePrompt, 32, local.get());
  EXPECT_GT(LargestDifference(story.prompt_logits, other.prompt_logits), 1e-3f);
  EXPECT_NE(story.decoded.tokens, other.decoded.tokens);
}

TEST(TransformerTest, ABatchIsItsSequencesAlone) {
  const Transformer model = MakeModel(4);
  const auto local = MakeLocal(model);
  const std::vector<uint32_t> first = RandomPrompt(model.shape(), 21, 1);
  const std::vector<uint32_t> second = RandomPrompt(model.shape(), 5, 2);
  for (uint64_t sequence : {1u, 2u, 3u, 4u}) ASSERT_TRUE(local->Open(sequence).ok());
  const StepTokens alone[] = {{1, 0, first}, {2, 0, second}};
  const StepTokens together[] = {{3, 0, first}, {4, 0, second}};
  std::vector<float> logits = model.Step({&alone[0], 1}, local.get()).value();
  const std::vector<float> more = model.Step({&alone[1], 1}, local.get()).value();
  logits.insert(logits.end(), more.begin(), more.end());
  EXPECT_EQ(model.Step(together, local.get()).value(), logits);
}

TEST(TransformerTest, NamesWhatIsWrong) {
  const Transformer model = MakeModel(1);
  const auto local = MakeLocal(model, kernels::KvDtype::kFloat32, 1, 2);
  const auto say = [&](uint64_t sequence, uint64_t position, const std::vector<uint32_t>& tokens) {
    const StepTokens step = {sequence, position, tokens};
    return std::string(model.Step({&step, 1}, local.get()).status().message());
  };
  ASSERT_TRUE(local->Open(kSequence).ok());
  EXPECT_THAT(say(kSequence, 0, {512}), HasSubstr("token 512 is not below the vocabulary of 512"));
  EXPECT_THAT(say(8, 0, {1}), HasSubstr("sequence 8 is not open"));
  EXPECT_THAT(say(kSequence, 3, {1}), HasSubstr("rows at position 3, but layer 0 ends at 0"));
  EXPECT_THAT(say(kSequence, 0, std::vector<uint32_t>(40, 1)), HasSubstr("all 2 pages are in use"));
  ModelShape shape;
  shape.vocabulary = 1;
  EXPECT_THAT(std::string(Transformer::Make(shape, 1).status().message()),
              HasSubstr("vocabulary is 1"));
}

}  // namespace
}  // namespace cairn::replay
