// Prompts by hand and from a seed: which are taken for the same start with a value that changes.
#include "router/explain/changing_starts.h"

#include <gmock/gmock.h>

#include <numeric>
#include <random>

namespace cairn::router {
namespace {

constexpr uint32_t kBlockTokens = 16;

BlockKey Root(uint8_t number) {
  BlockKey root;
  root.bytes[0] = number;
  return root;
}

// A block of a text, with `count` tokens at `position` that no other call gives.
std::vector<uint32_t> Block(uint32_t text, uint32_t position, uint32_t count) {
  static uint32_t next = 1'000'000;
  std::vector<uint32_t> block(kBlockTokens);
  std::iota(block.begin(), block.end(), text * 100);
  for (uint32_t i = 0; i < count; ++i) block[position + i] = next++;
  return block;
}

TEST(ChangingStartsTest, AValueThatChangesIsCountedAndSaidOnce) {
  ChangingStarts starts;
  int findings = 0;
  for (int i = 0; i < 100; ++i) {
    const auto finding = starts.Observe(Root(1), Block(1, 3, 4));
    if (!finding.has_value()) continue;
    ++findings;
    EXPECT_EQ(finding->position, 3u);
    EXPECT_EQ(finding->tokens, 4u);
    EXPECT_EQ(i, static_cast<int>(ChangingStarts::kPromptsToSay));
  }
  EXPECT_EQ(findings, 1);
  EXPECT_EQ(starts.prompts(), 99u) << "all but the first";
}

TEST(ChangingStartsTest, AlsoBehindSeveralSystemPromptsInTurns) {
  ChangingStarts starts;
  bool found = false;
  for (uint32_t i = 0; i < 200; ++i) {
    std::vector<uint32_t> block = Block(i % 5, 4, 2);
    std::fill(block.begin(), block.begin() + 4, 7);  // "Today is "
    const auto finding = starts.Observe(Root(1), block);
    if (!finding.has_value()) continue;
    found = true;
    EXPECT_EQ(finding->position, 4u);
    EXPECT_EQ(finding->tokens, 2u);
  }
  EXPECT_TRUE(found);
}

TEST(ChangingStartsTest, PromptsThatAreOthersFromSomeTokenOnAreNone) {
  ChangingStarts starts;
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) {
    std::vector<uint32_t> block(kBlockTokens, 7);
    const size_t common = random() % kBlockTokens;
    for (size_t t = common; t < block.size(); ++t) block[t] = static_cast<uint32_t>(random());
    EXPECT_FALSE(starts.Observe(Root(1), block).has_value());
  }
  EXPECT_EQ(starts.prompts(), 0u);
}

TEST(ChangingStartsTest, ScopesAreNotComparedWithEachOther) {
  ChangingStarts starts;
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(starts.Observe(Root(static_cast<uint8_t>(i)), Block(1, 3, 4)).has_value());
  }
  EXPECT_EQ(starts.prompts(), 0u);
}

TEST(ChangingStartsTest, AValueThatSometimesEndsAlikeIsStillOne) {
  ChangingStarts starts;
  int findings = 0;
  for (uint32_t i = 0; i < 100; ++i) {
    std::vector<uint32_t> block = Block(1, 3, 4);
    block[6] = i % 3;  // Its last token is seldom another.
    findings += starts.Observe(Root(1), block).has_value() ? 1 : 0;
  }
  EXPECT_EQ(findings, 1);
}

TEST(ChangingStartsTest, WhatItKeepsIsBounded) {
  ChangingStarts starts;
  for (uint32_t i = 0; i < 4 * ChangingStarts::kScopesMax; ++i) {
    BlockKey root;
    root.bytes[0] = static_cast<uint8_t>(i);
    root.bytes[1] = static_cast<uint8_t>(i >> 8);
    starts.Observe(root, Block(1, 3, 4));
  }
  // The first scope was forgotten: its next prompt is its first.
  starts.Observe(Root(0), Block(1, 3, 4));
  EXPECT_EQ(starts.prompts(), 0u);
  EXPECT_FALSE(starts.Observe(Root(1), {}).has_value());
  const std::vector<uint32_t> huge(ChangingStarts::kBlockTokensMax + 1, 1);
  EXPECT_FALSE(starts.Observe(Root(1), huge).has_value());
}

}  // namespace
}  // namespace cairn::router
