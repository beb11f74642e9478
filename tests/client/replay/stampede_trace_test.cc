// Method: the trace is read to its end; blocks are computed and hit by hand.
#include "client/replay/stampede_trace.h"

#include <gtest/gtest.h>

#include "client/replay/computed_blocks.h"

namespace cairn::replay {
namespace {

TEST(StampedeTrace, IsOnePromptAsOftenAsAsked) {
  const auto trace = StampedeTrace::Make({.requests = 3, .prompt_tokens = 100, .seed = 5});
  ASSERT_TRUE(trace.ok()) << trace.status();
  const auto other = StampedeTrace::Make({.requests = 1, .prompt_tokens = 100, .seed = 6});
  const std::vector<uint32_t> tokens = (**(*trace)->Next()).prompt.Tokens();
  EXPECT_EQ(tokens.size(), 100u);
  EXPECT_EQ((**(*trace)->Next()).prompt.Tokens(), tokens);
  EXPECT_NE((**(*other)->Next()).prompt.Tokens(), tokens);
  EXPECT_TRUE((*trace)->Next()->has_value());
  EXPECT_FALSE((*trace)->Next()->has_value());
}

TEST(StampedeTrace, SaysWhatIsOutOfRange) {
  EXPECT_FALSE(StampedeTrace::Make({.requests = 0}).ok());
  EXPECT_FALSE(StampedeTrace::Make({.prompt_tokens = 0}).ok());
  EXPECT_FALSE(StampedeTrace::Make({.seed = ~uint64_t{0}}).ok());
}

BlockKey Key(uint8_t prompt, uint8_t block) {
  BlockKey key;
  key.bytes[0] = prompt;
  key.bytes[1] = block;
  return key;
}

TEST(ComputedBlocks, CountsTheBlockThatMostComputed) {
  ComputedBlocks computed;
  EXPECT_EQ(computed.most(), 0u);
  std::vector<BlockKey> keys;
  for (uint8_t i = 0; i < 8; ++i) keys.push_back(Key(1, i));
  computed.Add(keys, 0);
  computed.Add(keys, 8);
  EXPECT_EQ(computed.most(), 1u);
  computed.Add(keys, 5);  // The last three.
  EXPECT_EQ(computed.most(), 2u);
  computed.Add({Key(2, 0)}, 0);
  EXPECT_EQ(computed.most(), 2u);
}

}  // namespace
}  // namespace cairn::replay
