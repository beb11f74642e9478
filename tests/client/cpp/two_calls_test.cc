// Transfers so large that two calls at once move them: through a fake node over real connections,
// of which one is cut, refuses, lies or goes away.
#include <gmock/gmock.h>

#include <set>
#include <string>

#include "tests/client/cpp/client_fixture.h"

namespace cairn {
namespace {

using ::testing::Each;
using ::testing::SizeIs;

constexpr size_t kBlocks = 9;  // Of 1 MiB: an odd number, so that the calls differ.

class TwoCallsTest : public testing::ClientTest {
 protected:
  TwoCallsTest() {
    Namespace fields = testing::SampleNamespace();
    fields.layout.groups[0].layers = 16;
    fields.layout.groups[0].kv_heads = 8;  // Segments of 64 KiB.
    fields.layout.groups[0].key_dim = 128;
    fields.layout.groups[0].value_dim = 128;
    Use(fields);
    CAIRN_CHECK(handle_->block_bytes() == 1 << 20);
  }

  std::string KeysFrom(const Prompt& prompt, size_t first) const {
    std::string keys;
    for (size_t i = first; i < prompt.keys().size(); i += 2)
      keys += std::string(prompt.keys()[i].view());
    return keys;
  }
};

TEST_F(TwoCallsTest, WhatIsPutIsGotEachCallWithEverySecondBlock) {
  const Prompt prompt = MakePrompt(kBlocks);
  const absl::StatusOr<PutResult> put = Put(prompt);
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_TRUE(put->complete());
  EXPECT_EQ(put->bytes_written, kBlocks << 20);
  EXPECT_EQ(node_->Calls("Write"), 2);

  const GetResult got = Get(prompt.keys());
  EXPECT_TRUE(got.AllGood()) << got.status;
  EXPECT_EQ(buffer_, Payload(prompt.keys()));
  const std::vector<v1::GetRequest> gets = node_->gets();
  ASSERT_THAT(gets, SizeIs(2));
  const std::set<std::string> asked = {gets[0].keys(), gets[1].keys()};
  EXPECT_EQ(asked, (std::set<std::string>{KeysFrom(prompt, 0), KeysFrom(prompt, 1)}));
}

TEST_F(TwoCallsTest, SmallTransfersStayInOneCall) {
  const Prompt prompt = MakePrompt(4);
  ASSERT_TRUE(Put(prompt)->complete());
  EXPECT_TRUE(Get(prompt.keys()).AllGood());
  EXPECT_EQ(node_->Calls("Write"), 1);
  EXPECT_THAT(node_->gets(), SizeIs(1));
}

TEST_F(TwoCallsTest, ACutCallOfAGetIsMadeUpForAndTheOtherOneIsNotWaitedForInVain) {
  const Prompt prompt = MakePrompt(kBlocks);
  ASSERT_TRUE(Put(prompt)->complete());
  for (size_t frames : {0, 1, 3}) {
    node_->CutNextGetAfter(frames);
    const GetResult got = Get(prompt.keys());
    EXPECT_TRUE(got.AllGood()) << frames << ": " << got.status;
    EXPECT_EQ(buffer_, Payload(prompt.keys())) << frames;
  }
}

TEST_F(TwoCallsTest, ACutCallOfAWriteGoesOnWhereBothWereAnswered) {
  for (size_t frames : {0, 1, 3}) {
    Use(handle_->fields());
    node_->CutNextWriteAfter(frames);
    const Prompt prompt = MakePrompt(kBlocks);
    const absl::StatusOr<PutResult> put = Put(prompt);
    ASSERT_TRUE(put.ok()) << frames << ": " << put.status();
    EXPECT_TRUE(put->complete()) << frames;
    EXPECT_GE(node_->Calls("Write"), 3) << frames;
    EXPECT_TRUE(Get(prompt.keys()).AllGood()) << frames;
    EXPECT_EQ(buffer_, Payload(prompt.keys())) << frames;
  }
}

// What the other call had answered behind the gap does not hide it.
TEST_F(TwoCallsTest, AFrameThatWasNeverTakenIsSentAgainThoughLaterOnesWereAnswered) {
  node_->HoldNextWriteUntil(4);
  const Prompt prompt = MakePrompt(kBlocks);
  const absl::StatusOr<PutResult> put = Put(prompt);
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_TRUE(put->complete());
  EXPECT_TRUE(Get(prompt.keys()).AllGood());
  EXPECT_EQ(buffer_, Payload(prompt.keys()));
}

TEST_F(TwoCallsTest, RefusalsInBothCallsAreListedOnce) {
  node_->RefusePieces(true);  // The first of every frame.
  const Prompt prompt = MakePrompt(kBlocks);
  absl::StatusOr<WriteSession> session =
      client_->Reserve(*handle_, prompt, 0, prompt.block_count(), {});
  ASSERT_TRUE(session.ok());
  std::vector<uint8_t> bytes = Payload(prompt.keys());
  const ContiguousBlocks source(&handle_->payload_map(), absl::MakeSpan(bytes));
  const absl::StatusOr<WriteResult> written = session->WriteAll(source);
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_THAT(written->errors, SizeIs(node_->frames_written()));
  std::set<std::pair<size_t, uint32_t>> places;
  size_t refused = 0;
  for (const SegmentError& error : written->errors) {
    EXPECT_TRUE(places.insert({error.block, error.first.layer}).second);
    refused += error.layers;
  }
  EXPECT_EQ(written->segments_written, kBlocks * 16 - refused);
}

TEST_F(TwoCallsTest, ANodeThatAnswersTooOftenBreaksTheWrite) {
  node_->AnswerTwice(true);
  EXPECT_EQ(Put(MakePrompt(kBlocks)).status().code(), absl::StatusCode::kInternal);
}

TEST_F(TwoCallsTest, WrongBytesInOneCallAreThatBlocksMissOnly) {
  const Prompt prompt = MakePrompt(kBlocks);
  ASSERT_TRUE(Put(prompt)->complete());
  node_->BendGet([](testing::FakeNode::Frames* frames) {
    if (frames->size() > 1) frames->front().mutable_payload()->at(5) ^= 1;
  });
  const GetResult got = Get(prompt.keys());
  size_t bad = 0;
  for (size_t block = 0; block < kBlocks; ++block) {
    const bool mismatch = got.blocks[block].failure == BlockFailure::kMismatch;
    bad += mismatch;
    EXPECT_TRUE(mismatch || got.blocks[block].good()) << block;
    for (size_t i = 0; i < 16; ++i) {
      const auto segment = absl::MakeSpan(buffer_).subspan((block * 16 + i) << 16, 1 << 16);
      if (!got.SegmentGood(block, i)) {
        EXPECT_THAT(segment, Each(0));
      }
    }
  }
  EXPECT_EQ(bad, 2u);  // Each call's first block.
}

TEST_F(TwoCallsTest, ANodeThatIsGoneLeavesZerosAndSaysSo) {
  const Prompt prompt = MakePrompt(kBlocks);
  node_->Stop();
  const GetResult got = Get(prompt.keys());
  EXPECT_EQ(got.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(got.usable_prefix, 0u);
  EXPECT_THAT(buffer_, Each(0));
}

}  // namespace
}  // namespace cairn
