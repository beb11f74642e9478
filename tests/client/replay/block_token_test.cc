// Known outputs of splitmix64 (block tokens computed by a script apart from the product), and what
// must be equal or differ between the tokens of blocks and of prompts.
#include "client/replay/block_token.h"

#include <gmock/gmock.h>

#include <vector>

#include "client/replay/trace_prompt.h"

namespace cairn::replay {
namespace {

using ::testing::ElementsAre;

std::vector<uint32_t> Block(uint64_t name_space, uint64_t id) {
  return TracePrompt::FromIds(name_space, 16, {{id, 1}}, 16).Tokens();
}

TEST(BlockToken, StepsAreThoseOfSplitMix64) {
  // The first outputs of the published generator from state 0.
  EXPECT_EQ(SplitMix64(0), 0xe220a8397b1dcdaf);
  EXPECT_EQ(SplitMix64(kSplitMixStep), 0x6e789e6aa1b965f4);
  EXPECT_EQ(SplitMix64(2 * kSplitMixStep), 0x06c45d188009454f);
}

TEST(BlockToken, StaysTheSameInEveryBuild) {
  const uint64_t seed = BlockSeed(0, 7);
  EXPECT_THAT(
      (std::vector<uint32_t>{BlockToken(seed, 0), BlockToken(seed, 1), BlockToken(seed, 511)}),
      ElementsAre(116890, 28379, 23182));
}

TEST(BlockToken, LiesInTheVocabulary) {
  for (uint64_t i = 0; i < 1000; ++i) EXPECT_LT(BlockToken(BlockSeed(3, i), i), kVocabulary);
}

TEST(TracePrompt, EqualIdsOfOneNamespaceAreEqualTokens) { EXPECT_EQ(Block(5, 9), Block(5, 9)); }

TEST(TracePrompt, OtherIdsAndNamespacesAreOtherTokens) {
  EXPECT_NE(Block(5, 9), Block(5, 10));
  EXPECT_NE(Block(5, 9), Block(6, 9));
  EXPECT_NE(Block(5, 9), Block(9, 5));
}

TEST(TracePrompt, ThePartialLastBlockStartsAsTheFullOneDoes) {
  const std::vector<uint32_t> full = TracePrompt::FromIds(0, 4, {{1, 3}}, 12).Tokens();
  const std::vector<uint32_t> partial = TracePrompt::FromIds(0, 4, {{1, 3}}, 10).Tokens();
  ASSERT_EQ(full.size(), 12u);
  EXPECT_EQ(partial, std::vector<uint32_t>(full.begin(), full.begin() + 10));
}

TEST(TracePrompt, RealTokensComeBackAsTheyWere) {
  const std::vector<uint32_t> tokens = {4, 0, 4294967295};
  EXPECT_EQ(TracePrompt::FromTokens(tokens).Tokens(), tokens);
  EXPECT_EQ(TracePrompt::FromTokens(tokens).token_count(), 3u);
}

TEST(IdRun, GoesOnWhereTheLastOneEnds) {
  std::vector<IdRun> runs;
  for (const IdRun run : {IdRun{3, 1}, {4, 2}, {7, 1}, {6, 1}, {7, 0}}) AppendRun(run, &runs);
  EXPECT_THAT(runs, ElementsAre(IdRun{3, 3}, IdRun{7, 1}, IdRun{6, 1}));
}

}  // namespace
}  // namespace cairn::replay
