// One model decodes one prompt in every way that a worker may: prefill chunks, a prefix put by
// another, KV split over several holders, slices of heads, drafts, forks. Tokens are held against
// those of a decode that is all local.
#include <gmock/gmock.h>

#include <algorithm>
#include <iostream>
#include <utility>

#include "client/replay/model/merged_attention.h"
#include "client/replay/model/sliced_attention.h"
#include "common/base/check.h"
#include "tests/client/replay/model/worker.h"

namespace cairn::replay {
namespace {

using ::testing::ElementsAreArray;

constexpr uint64_t kPromptTokens = 70;  // Four blocks and some.
constexpr uint64_t kSteps = 48;

class DecodeTest : public ::testing::Test {
 protected:
  DecodeTest() : model_(MakeModel(11)), prompt_(RandomPrompt(model_.shape(), kPromptTokens, 5)) {
    local_ = MakeLocal(model_);
    CAIRN_CHECK_OK(local_->Open(kSequence));
    story_ = Tell(model_, prompt_, kWholePrompt, kSteps, local_.get());
  }

  // Blocks [begin, end) of what was decoded, as another holds them.
  std::unique_ptr<LocalAttention> Holder(uint64_t begin, uint64_t end) {
    std::unique_ptr<LocalAttention> holder = MakeLocal(model_);
    CAIRN_CHECK_OK(holder->Open(kSequence, begin * kBlockTokens));
    for (uint64_t i = begin; i < end; ++i) {
      CAIRN_CHECK_OK(holder->AppendPart(kSequence, local_->Part(kSequence, i).value()));
    }
    return holder;
  }

  // The prompt's last tokens from `begin` on and the decode, with what lies before already there.
  Story Continue(uint64_t begin, LayerAttention* attention) {
    const std::vector<uint32_t> rest(prompt_.begin() + static_cast<ptrdiff_t>(begin),
                                     prompt_.end());
    std::vector<float> logits =
        Prefill(model_, kSequence, begin, rest, kWholePrompt, attention).value();
    Decoded decoded =
        DecodeGreedy(model_, kSequence, kPromptTokens, logits, kSteps, attention).value();
    return {std::move(logits), std::move(decoded)};
  }

  void ExpectSameBits(const Story& story) {
    EXPECT_EQ(story.prompt_logits, story_.prompt_logits);
    EXPECT_EQ(story.decoded.tokens, story_.decoded.tokens);
    EXPECT_EQ(story.decoded.last_logits, story_.decoded.last_logits);
  }

  Transformer model_;
  std::vector<uint32_t> prompt_;
  std::unique_ptr<LocalAttention> local_;
  Story story_;
};

TEST_F(DecodeTest, AnyPrefillChunkGivesTheSameBits) {
  for (uint64_t chunk : {1u, 7u, 16u, 33u}) {
    const auto other = MakeLocal(model_);
    ASSERT_TRUE(other->Open(kSequence).ok());
    ExpectSameBits(Tell(model_, prompt_, chunk, kSteps, other.get()));
    for (uint64_t block = 0; block < 7; ++block) {
      EXPECT_EQ(other->Part(kSequence, block).value(), local_->Part(kSequence, block).value());
    }
  }
}

TEST_F(DecodeTest, ALongPromptGivesTheSameBitsInAnyChunk) {
  // More tokens than a kernel takes at once, which then merges its own partial results.
  const std::vector<uint32_t> prompt = RandomPrompt(model_.shape(), 560, 9);
  ASSERT_TRUE(local_->Truncate(kSequence, 0).ok());
  const Story whole = Tell(model_, prompt, kWholePrompt, 8, local_.get());
  ASSERT_TRUE(local_->Truncate(kSequence, 0).ok());
  const Story chunked = Tell(model_, prompt, 37, 8, local_.get());
  EXPECT_EQ(chunked.prompt_logits, whole.prompt_logits);
  EXPECT_EQ(chunked.decoded.last_logits, whole.decoded.last_logits);
}

TEST_F(DecodeTest, APrefixOfAnotherWorkerGivesTheSameBits) {
  for (uint64_t blocks : {1u, 2u, 4u}) {
    const auto filled = Holder(0, blocks);
    EXPECT_EQ(filled->EndPosition(kSequence).value(), blocks * kBlockTokens);
    ExpectSameBits(Continue(blocks * kBlockTokens, filled.get()));
  }
}

TEST_F(DecodeTest, OneWrongByteOfAPrefixShows) {
  const auto filled = MakeLocal(model_);
  ASSERT_TRUE(filled->Open(kSequence).ok());
  const auto part = local_->Part(kSequence, 0).value();
  std::vector<std::byte> bytes(part.begin(), part.end());
  bytes[2] ^= std::byte{0x40};  // The third byte of a key's first number: its mantissa.
  ASSERT_TRUE(filled->AppendPart(kSequence, bytes).ok());
  EXPECT_NE(Continue(kBlockTokens, filled.get()).prompt_logits, story_.prompt_logits);
}

TEST_F(DecodeTest, APrefixHeldByOthersMergesToTheSameTokens) {
  float most = 0;
  for (uint64_t split = 0; split <= 4; ++split) {
    const auto first = Holder(0, split);
    const auto second = Holder(split, 4);
    const auto tail = MakeLocal(model_);
    ASSERT_TRUE(tail->Open(kSequence, 4 * kBlockTokens).ok());
    MergedAttention merged(model_.heads(), {first.get(), second.get()}, tail.get());
    const Story story = Continue(4 * kBlockTokens, &merged);
    EXPECT_EQ(story.decoded.tokens, story_.decoded.tokens) << "split at block " << split;
    most = std::max(most, LargestDifference(story.decoded.last_logits, story_.decoded.last_logits));
  }
  std::cout << "merged in float32: logits differ by up to " << most << ", smallest margin "
            << story_.decoded.margin_min << "\n";
  EXPECT_LT(most, 1e-4f);
  // Else the same tokens were luck.
  EXPECT_GT(story_.decoded.margin_min, 2 * most);
}

TEST_F(DecodeTest, AFailedPartLeavesTheTailAsItWas) {
  const auto tail = MakeLocal(model_);
  ASSERT_TRUE(tail->Open(kSequence, 4 * kBlockTokens).ok());
  const auto lost = MakeLocal(model_);
  MergedAttention merged(model_.heads(), {lost.get()}, tail.get());
  const StepTokens step = {kSequence, 4 * kBlockTokens, {&prompt_[64], 1}};
  EXPECT_EQ(model_.Step({&step, 1}, &merged).status().code(), absl::StatusCode::kNotFound);
  const auto found = Holder(0, 4);
  MergedAttention again(model_.heads(), {found.get()}, tail.get());
  EXPECT_EQ(Continue(4 * kBlockTokens, &again).decoded.tokens, story_.decoded.tokens);
}

TEST_F(DecodeTest, TwoSlicesOfHeadsGiveTheSameBits) {
  const auto left = MakeLocal(model_, kernels::KvDtype::kFloat32, 2);
  const auto right = MakeLocal(model_, kernels::KvDtype::kFloat32, 2);
  ASSERT_TRUE(left->Open(kSequence).ok());
  ASSERT_TRUE(right->Open(kSequence).ok());
  SlicedAttention sliced(model_.heads(), {left.get(), right.get()});
  ExpectSameBits(Tell(model_, prompt_, 20, kSteps, &sliced));
  EXPECT_EQ(left->Part(kSequence, 0)->size() * 2, local_->Part(kSequence, 0)->size());
}

TEST_F(DecodeTest, DraftsAreVerifiedAndRejected) {
  const std::vector<uint32_t>& tokens = story_.decoded.tokens;
  ASSERT_TRUE(local_->Truncate(kSequence, kPromptTokens).ok());
  std::vector<float> logits = story_.prompt_logits;
  std::vector<uint32_t> seen;
  uint64_t rejected = 0;
  while (seen.size() + 6 <= kSteps) {
    // Six tokens over a block's edge at some point, wrong at a place that moves.
    std::vector<uint32_t> draft(tokens.begin() + static_cast<ptrdiff_t>(seen.size()),
                                tokens.begin() + static_cast<ptrdiff_t>(seen.size() + 6));
    const uint64_t wrong = 1 + seen.size() % 6;
    if (wrong < 6) draft[wrong] = (draft[wrong] + 1) % model_.shape().vocabulary;
    const uint64_t position = kPromptTokens + seen.size();
    const Verified verified =
        VerifyDraft(model_, kSequence, position, logits, draft, local_.get()).value();
    ASSERT_EQ(verified.accepted, wrong);
    rejected += 6 - wrong;
    seen.insert(seen.end(), draft.begin(), draft.begin() + static_cast<ptrdiff_t>(wrong));
    logits = verified.logits;
    ASSERT_TRUE(local_->Truncate(kSequence, kPromptTokens + seen.size()).ok());
  }
  EXPECT_GT(rejected, 20u);
  const Decoded last = DecodeGreedy(model_, kSequence, kPromptTokens + seen.size(), logits,
                                    kSteps - seen.size(), local_.get())
                           .value();
  seen.insert(seen.end(), last.tokens.begin(), last.tokens.end());
  EXPECT_THAT(seen, ElementsAreArray(tokens));
  EXPECT_EQ(last.last_logits, story_.decoded.last_logits);
}

TEST_F(DecodeTest, AForkOfFourSharesItsBlocksAndNothingElse) {
  ASSERT_TRUE(local_->Truncate(kSequence, kPromptTokens).ok());
  EXPECT_EQ(local_->pages_in_use(), 5u);
  for (uint64_t fork = 1; fork <= 3; ++fork) ASSERT_TRUE(local_->Fork(kSequence, fork).ok());
  EXPECT_EQ(local_->pages_in_use(), 5u);
  // All four diverge at their first token, a step of four, then go on.
  const uint64_t numbers[] = {kSequence, 1, 2, 3};
  const std::vector<uint32_t> starts = {story_.decoded.tokens[0], 10, 20, 30};
  std::vector<StepTokens> steps;
  for (size_t i = 0; i < 4; ++i) steps.push_back({numbers[i], kPromptTokens, {&starts[i], 1}});
  const std::vector<float> logits = model_.Step(steps, local_.get()).value();
  EXPECT_EQ(local_->pages_in_use(), 8u);  // Four full ones, and each its last.
  for (size_t i = 0; i < 4; ++i) {
    const uint64_t vocabulary = model_.shape().vocabulary;
    const std::vector<float> own(logits.begin() + static_cast<ptrdiff_t>(i * vocabulary),
                                 logits.begin() + static_cast<ptrdiff_t>((i + 1) * vocabulary));
    const Decoded forked =
        DecodeGreedy(model_, numbers[i], kPromptTokens + 1, own, 20, local_.get()).value();
    const auto alone = MakeLocal(model_);
    ASSERT_TRUE(alone->Open(kSequence).ok());
    std::vector<uint32_t> prompt = prompt_;
    prompt.push_back(starts[i]);
    const Story story = Tell(model_, prompt, kWholePrompt, 20, alone.get());
    EXPECT_EQ(forked.tokens, story.decoded.tokens) << "fork " << i;
    EXPECT_EQ(forked.last_logits, story.decoded.last_logits) << "fork " << i;
  }
  for (uint64_t number : numbers) ASSERT_TRUE(local_->Close(number).ok());
  EXPECT_EQ(local_->pages_in_use(), 0u);
}

}  // namespace
}  // namespace cairn::replay
