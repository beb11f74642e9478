// Write, Commit and Abort: who may fill what, when bytes count as in, and when a block appears.
// Each test is a story on a small store with a fake clock.
#include <gmock/gmock.h>

#include "common/base/check.h"
#include "tests/cache_node/store/test_store.h"

namespace cairn::node {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr SegmentId kFirst{0, 0, 0};

class WriteTest : public ::testing::Test {
 protected:
  // Two slices of three layers that a block needs, and two draft slices of one layer that it does
  // not.
  WriteTest() {
    t_.Register(TestStore::ManySegments(3, 2, true));
    prompt_ = t_.Prompt("t", 1, 2);
    const auto answer = t_.Reserve(prompt_);
    CAIRN_CHECK_OK(answer.status());
    token_ = *answer->token;
  }

  absl::Status Write(uint32_t block, const SegmentId& first, uint32_t layers, uint64_t writer = 1) {
    return t_.Write("t", token_, prompt_.keys[block], block, first, layers, writer);
  }
  absl::StatusOr<CommitAnswer> Commit(uint32_t block, const SegmentId& first, uint32_t layers) {
    return t_.store->Commit("t", token_, {t_.Piece(prompt_.keys[block], block, first, layers).run});
  }
  absl::StatusOr<WriteClaim> Begin(const WritePiece& piece, uint64_t writer = 1) {
    return t_.store->BeginWrite("t", token_, writer, piece);
  }
  // A range of the segment's right bytes, written and finished.
  absl::Status WriteRange(const SegmentId& segment, uint32_t offset, uint32_t length,
                          uint64_t writer) {
    WritePiece piece = t_.Piece(prompt_.keys[0], 0, segment, 1);
    piece.offset = offset;
    piece.length = length;
    auto claim = Begin(piece, writer);
    if (!claim.ok()) return claim.status();
    const std::vector<uint8_t> bytes = t_.Bytes(prompt_.keys[0], segment, 1);
    if (*claim) {
      std::copy(bytes.begin() + offset, bytes.begin() + offset + length,
                claim->destination().begin());
    }
    return t_.store->FinishWrite(*std::move(claim));
  }
  void Audit() { EXPECT_TRUE(t_.store->Audit().ok()) << t_.store->Audit(); }

  TestStore t_;
  TestPrompt prompt_;
  TokenId token_;
};

TEST_F(WriteTest, ABlockAppearsWithTheLastSegmentOfItsRequiredGroupsAndNotBefore) {
  ASSERT_TRUE(Write(0, {0, 0, 0}, 3).ok());
  ASSERT_TRUE(Write(0, {0, 1, 0}, 3).ok());
  EXPECT_EQ(t_.Present(prompt_), 0u);
  ASSERT_TRUE(Commit(0, {0, 0, 0}, 3).ok());
  ASSERT_TRUE(Commit(0, {0, 1, 0}, 2).ok());
  EXPECT_THAT(t_.States(prompt_), ElementsAre(BlockState::kPending, BlockState::kPending));
  EXPECT_FALSE(t_.Pin("t", prompt_.keys[0]));
  const auto last = Commit(0, {0, 1, 2}, 1);
  ASSERT_TRUE(last.ok());
  EXPECT_EQ(last->blocks_present, 1u);
  EXPECT_FALSE(last->complete);
  EXPECT_EQ(t_.Present(prompt_), 1u);
  EXPECT_TRUE(t_.Intact(t_.Pin("t", prompt_.keys[0]), prompt_.keys[0]));
  EXPECT_EQ(t_.store->Status().reserved_bytes,
            t_.store->FindPayloadMap(t_.fingerprint())->block_bytes());
  Audit();
}

TEST_F(WriteTest, CommitListsWhatIsMissingAsRunsOfRequiredLayers) {
  ASSERT_TRUE(Write(0, {0, 0, 1}, 1).ok());
  const auto answer = Commit(0, {0, 0, 1}, 1);
  ASSERT_TRUE(answer.ok());
  ASSERT_EQ(answer->missing.size(), 5u);  // Slice 0: layers 0 and 2; slice 1: all; block 1: both.
  EXPECT_EQ(answer->missing[0].layer, 0u);
  EXPECT_EQ(answer->missing[0].layers, 1u);
  EXPECT_EQ(answer->missing[1].layer, 2u);
  EXPECT_EQ(answer->missing[2].slice, 1u);
  EXPECT_EQ(answer->missing[2].layers, 3u);
  EXPECT_EQ(answer->missing[3].block, 1u);
  EXPECT_EQ(answer->missing[3].layers, 3u);
}

TEST_F(WriteTest, CommitIsIdempotentAlsoWhenAllIsPresentAndEvenEvicted) {
  for (uint32_t block = 0; block < 2; ++block) {
    ASSERT_TRUE(t_.WriteBlock("t", token_, prompt_.keys[block], block).ok());
    ASSERT_TRUE(t_.CommitBlock("t", token_, prompt_.keys[block], block).ok());
  }
  EXPECT_EQ(t_.store->Status().reserved_bytes, 0u);
  for (int i = 0; i < 2; ++i) {
    const auto again = t_.CommitBlock("t", token_, prompt_.keys[1], 1);
    ASSERT_TRUE(again.ok());
    EXPECT_TRUE(again->complete);
    EXPECT_EQ(again->blocks_present, 2u);
    EXPECT_TRUE(again->errors.empty());
    ASSERT_TRUE(t_.store->Delete("t", t_.fingerprint(), {prompt_.keys[1]}).ok());
  }
}

TEST_F(WriteTest, ACommitWithAnotherDigestOrOfUnwrittenLayersIsRefusedForThatRunOnly) {
  ASSERT_TRUE(Write(0, {0, 0, 0}, 3).ok());
  ASSERT_TRUE(Write(0, {0, 1, 0}, 3).ok());
  std::vector<SegmentRun> runs = {t_.Piece(prompt_.keys[0], 0, {0, 0, 0}, 3).run,
                                  t_.Piece(prompt_.keys[0], 0, {0, 1, 0}, 3).run,
                                  t_.Piece(prompt_.keys[0], 0, {1, 0, 0}, 1).run,
                                  t_.Piece(prompt_.keys[0], 9, {0, 0, 0}, 1).run};
  runs[0].digests[1] ^= 1;
  const auto answer = t_.store->Commit("t", token_, runs);
  ASSERT_TRUE(answer.ok());
  ASSERT_EQ(answer->errors.size(), 3u);
  EXPECT_EQ(answer->errors[0].first, 0u);
  EXPECT_THAT(answer->errors[0].second.message(), HasSubstr("layer 1 was written with digest"));
  EXPECT_EQ(answer->errors[1].first, 2u);
  EXPECT_THAT(answer->errors[1].second.message(), HasSubstr("write it first"));
  EXPECT_EQ(answer->errors[2].second.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(t_.Present(prompt_), 0u);
  Audit();
}

TEST_F(WriteTest, WhatIsInIsOkAgainWithTheSameDigestAndUntouchedByAnother) {
  ASSERT_TRUE(Write(0, kFirst, 3).ok());
  auto again = Begin(t_.Piece(prompt_.keys[0], 0, kFirst, 3), /*writer=*/2);
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again->already_in());
  EXPECT_FALSE(*again);
  EXPECT_TRUE(t_.store->FinishWrite(*std::move(again)).ok());
  WritePiece other = t_.Piece(prompt_.keys[0], 0, kFirst, 3);
  other.run.digests[2] ^= 1;
  EXPECT_EQ(Begin(other).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Write(0, {0, 1, 0}, 3), absl::OkStatus());
  ASSERT_TRUE(Commit(0, kFirst, 3).ok());
  ASSERT_TRUE(Commit(0, {0, 1, 0}, 3).ok());
  EXPECT_TRUE(t_.Intact(t_.Pin("t", prompt_.keys[0]), prompt_.keys[0]));
}

TEST_F(WriteTest, ASegmentHasOneWriterFromItsFirstByteOn) {
  auto claim = Begin(t_.Piece(prompt_.keys[0], 0, kFirst, 2));
  ASSERT_TRUE(claim.ok());
  const absl::Status second = Write(0, {0, 0, 1}, 2, /*writer=*/2);
  EXPECT_EQ(second.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(second.message(), HasSubstr("being written by another writer"));
  *claim = WriteClaim();  // The first one gives up.
  EXPECT_TRUE(Write(0, {0, 0, 1}, 2, /*writer=*/2).ok());
  EXPECT_EQ(t_.store->Status().pins, 0u);
  Audit();
}

TEST_F(WriteTest, BytesWithAnotherDigestThanTheWritersAreRefusedAndMayBeSentAgain) {
  auto claim = Begin(t_.Piece(prompt_.keys[0], 0, kFirst, 3));
  ASSERT_TRUE(claim.ok());
  std::fill(claim->destination().begin(), claim->destination().end(), 0xee);
  const absl::Status status = t_.store->FinishWrite(*std::move(claim));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("group 0, slice 0, layer 0"));
  EXPECT_EQ(t_.counters.digest_mismatches, 1u);
  EXPECT_TRUE(Write(0, kFirst, 3).ok());
}

TEST_F(WriteTest, PiecesOfOneSegmentLandInOrderFromOneWriter) {
  ASSERT_TRUE(WriteRange(kFirst, 0, 16, 5).ok());
  EXPECT_EQ(WriteRange(kFirst, 32, 16, 5).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(WriteRange(kFirst, 16, 16, 6).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Write(0, kFirst, 1, 6).code(), absl::StatusCode::kAborted);
  ASSERT_TRUE(WriteRange(kFirst, 16, 40, 5).ok());
  EXPECT_THAT(Commit(0, kFirst, 1)->errors.size(), 1u);  // Not in before its last byte.
  ASSERT_TRUE(WriteRange(kFirst, 56, 8, 5).ok());
  EXPECT_TRUE(Commit(0, kFirst, 1)->errors.empty());
  EXPECT_TRUE(WriteRange(kFirst, 16, 40, 6).ok());  // In already, with this digest.
  Audit();
}

TEST_F(WriteTest, AWriterThatEndsGivesBackTheSegmentsItDidNotFinish) {
  ASSERT_TRUE(WriteRange(kFirst, 0, 16, 5).ok());
  t_.store->EndWriter(token_, 6);
  EXPECT_EQ(WriteRange(kFirst, 0, 16, 6).code(), absl::StatusCode::kAborted);
  t_.store->EndWriter(token_, 5);
  EXPECT_EQ(WriteRange(kFirst, 16, 16, 5).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(WriteRange(kFirst, 0, 16, 6).ok());
  Audit();
}

TEST_F(WriteTest, MalformedPiecesNameWhatIsWrong) {
  WritePiece piece = t_.Piece(prompt_.keys[0], 0, kFirst, 2);
  WritePiece wrong_part = piece;
  wrong_part.run.slice = 7;
  WritePiece wrong_layer = piece;
  wrong_layer.run.layer = 2;
  WritePiece wrong_length = piece;
  wrong_length.length -= 1;
  WritePiece wrong_block = piece;
  wrong_block.run.block = 2;
  WritePiece no_digest = piece;
  no_digest.run.digests.clear();
  WritePiece past_end = t_.Piece(prompt_.keys[0], 0, kFirst, 1);
  past_end.offset = 0xffffffc0;
  for (const WritePiece& bad :
       {wrong_part, wrong_layer, wrong_length, wrong_block, no_digest, past_end}) {
    EXPECT_EQ(Begin(bad).status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(t_.store->Status().pins, 0u);
}

TEST_F(WriteTest, AForeignUnknownOrExpiredTokenIsAbortedAlike) {
  const WritePiece piece = t_.Piece(prompt_.keys[0], 0, kFirst, 1);
  const absl::Status foreign = t_.store->BeginWrite("u", token_, 1, piece).status();
  const absl::Status unknown = t_.store->BeginWrite("t", TokenId{}, 1, piece).status();
  t_.Advance(absl::Seconds(31));
  const absl::Status expired = Begin(piece).status();
  EXPECT_EQ(foreign.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(foreign, unknown);
  EXPECT_EQ(foreign, expired);
  EXPECT_EQ(t_.store->Abort("t", token_), expired);
  EXPECT_EQ(t_.store->Commit("t", token_, {}).status(), expired);
}

TEST_F(WriteTest, AnExpiredTokenTakesItsUnfinishedBlocksAndTheirSpaceWithIt) {
  ASSERT_TRUE(t_.WriteBlock("t", token_, prompt_.keys[0], 0).ok());
  ASSERT_TRUE(t_.CommitBlock("t", token_, prompt_.keys[0], 0).ok());
  ASSERT_TRUE(Write(1, kFirst, 3).ok());
  t_.Advance(absl::Seconds(31));
  EXPECT_THAT(t_.States(prompt_), ElementsAre(BlockState::kHost, BlockState::kNeverSeen));
  EXPECT_EQ(t_.counters.expired_tokens, 1u);
  EXPECT_EQ(t_.store->Status().host_used_bytes, t_.store->Tenants()[0].charged_bytes);
  EXPECT_EQ(t_.store->Status().blocks, 1u);
  EXPECT_TRUE(t_.Quiet().ok()) << t_.Quiet();
  EXPECT_EQ(t_.Put(prompt_), 1u);  // Another writer succeeds.
}

TEST_F(WriteTest, WritesRenewATokenWithinTheBoundOfItsLife) {
  absl::Duration lived;
  for (; lived < absl::Minutes(40); lived += absl::Seconds(20)) {
    if (!Write(0, kFirst, 1).ok()) break;
    t_.Advance(absl::Seconds(20));
  }
  EXPECT_GE(lived, absl::Minutes(29));
  EXPECT_LE(lived, absl::Minutes(31));
}

TEST_F(WriteTest, BytesOfAWriteThatOutlivesItsTokenLandNowhere) {
  auto claim = Begin(t_.Piece(prompt_.keys[0], 0, kFirst, 3));
  ASSERT_TRUE(claim.ok());
  t_.Advance(absl::Seconds(31));
  const uint64_t block_bytes = t_.store->FindPayloadMap(t_.fingerprint())->block_bytes();
  EXPECT_EQ(t_.store->Status().host_used_bytes, block_bytes);  // Pinned past the expiry.
  // Others take all slots that there are and write their own.
  const TestPrompt others = t_.Prompt("t", 2, 8);
  EXPECT_EQ(t_.Put(others), 8u);
  std::fill(claim->destination().begin(), claim->destination().end(), 0xee);
  EXPECT_EQ(t_.store->FinishWrite(*std::move(claim)).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(t_.Present(prompt_), 0u);
  for (const BlockKey& key : others.keys) EXPECT_TRUE(t_.Intact(t_.Pin("t", key), key));
  EXPECT_EQ(t_.store->Status().host_used_bytes, 8 * block_bytes);
  t_.Advance(absl::Minutes(1));
  EXPECT_TRUE(t_.Quiet().ok()) << t_.Quiet();
}

TEST_F(WriteTest, AbortEndsTheTokenForAllAndLeavesPresentBlocks) {
  ASSERT_TRUE(t_.WriteBlock("t", token_, prompt_.keys[0], 0).ok());
  ASSERT_TRUE(t_.CommitBlock("t", token_, prompt_.keys[0], 0).ok());
  EXPECT_EQ(t_.store->Abort("u", token_).code(), absl::StatusCode::kAborted);
  ASSERT_TRUE(t_.store->Abort("t", token_).ok());
  EXPECT_EQ(Write(1, kFirst, 1).code(), absl::StatusCode::kAborted);
  EXPECT_THAT(t_.States(prompt_), ElementsAre(BlockState::kHost, BlockState::kNeverSeen));
  EXPECT_TRUE(t_.Quiet().ok()) << t_.Quiet();
}

TEST_F(WriteTest, FourRanksWriteOneBlockWithOneTokenAndItAppearsWithTheLast) {
  for (uint32_t slice = 0; slice < 2; ++slice) {
    ASSERT_TRUE(Write(0, {0, slice, 0}, 3, /*writer=*/slice).ok());
    EXPECT_EQ(t_.Present(prompt_), 0u);
    ASSERT_TRUE(Commit(0, {0, slice, 0}, 3).ok());
  }
  EXPECT_EQ(t_.Present(prompt_), 1u);
}

TEST_F(WriteTest, AnOptionalPartComesAfterTheBlockIsPresentAndIsReadOnceWhole) {
  ASSERT_TRUE(Write(0, {0, 0, 0}, 3).ok());
  ASSERT_TRUE(Write(0, {0, 1, 0}, 3).ok());
  ASSERT_TRUE(Commit(0, {0, 0, 0}, 3).ok());
  ASSERT_TRUE(Commit(0, {0, 1, 0}, 3).ok());
  const BlockPin pin = t_.Pin("t", prompt_.keys[0]);
  ASSERT_TRUE(pin);
  const size_t draft = *t_.store->FindPayloadMap(t_.fingerprint())->FindSegment({1, 1, 0});
  EXPECT_FALSE(pin.SegmentPresent(draft));
  ASSERT_TRUE(Write(0, {1, 1, 0}, 1).ok());
  EXPECT_FALSE(pin.SegmentPresent(draft));
  ASSERT_TRUE(Commit(0, {1, 1, 0}, 1)->errors.empty());
  EXPECT_TRUE(pin.SegmentPresent(draft));
  EXPECT_TRUE(t_.Intact(pin, prompt_.keys[0]));
  Audit();
}

TEST_F(WriteTest, ABlockDeletedAfterItWasPresentTakesNoLateOptionalPart) {
  ASSERT_TRUE(Write(0, {0, 0, 0}, 3).ok());
  ASSERT_TRUE(Write(0, {0, 1, 0}, 3).ok());
  ASSERT_TRUE(Commit(0, {0, 0, 0}, 3).ok());
  ASSERT_TRUE(Commit(0, {0, 1, 0}, 3).ok());
  auto claim = Begin(t_.Piece(prompt_.keys[0], 0, {1, 0, 0}, 1));
  ASSERT_TRUE(claim.ok());
  ASSERT_TRUE(t_.store->Delete("t", t_.fingerprint(), {prompt_.keys[0]}).ok());
  EXPECT_EQ(t_.store->FinishWrite(*std::move(claim)).code(), absl::StatusCode::kAborted);
  Audit();
}

// Segments long enough to be hashed while they are copied, from runs cut anywhere.
TEST(FillTest, LongSegmentsAreHashedOnTheWayAndAWrongByteIsRefused) {
  constexpr size_t kSegmentBytes = 32 << 10;
  TestStore store({.pool_bytes = 4 << 20});
  Namespace fields = TestStore::Shape(kSegmentBytes);
  fields.layout.groups[0].layers = 3;
  store.Register(fields);
  const TestPrompt prompt = store.Prompt("t", 1, 1);
  const auto answer = store.Reserve(prompt);
  ASSERT_TRUE(answer.ok()) << answer.status();
  const std::vector<uint8_t> right = store.Bytes(prompt.keys[0], {0, 0, 0}, 3);
  const auto write = [&](const std::vector<uint8_t>& bytes) {
    auto claim = store.store->BeginWrite("t", *answer->token, 1,
                                         store.Piece(prompt.keys[0], 0, {0, 0, 0}, 3));
    if (!claim.ok()) return claim.status();
    size_t done = 0;
    claim->Fill([&](size_t bytes_max) {
      const size_t run = std::min<size_t>(bytes_max, 7001);
      done += run;
      return absl::MakeConstSpan(bytes).subspan(done - run, run);
    });
    EXPECT_EQ(done, bytes.size());
    return store.store->FinishWrite(*std::move(claim));
  };
  for (size_t at : {size_t{0}, kSegmentBytes, right.size() - 1}) {
    std::vector<uint8_t> wrong = right;
    wrong[at] ^= 1;
    EXPECT_EQ(write(wrong).code(), absl::StatusCode::kInvalidArgument) << at;
  }
  EXPECT_TRUE(write(right).ok());
  EXPECT_TRUE(
      store.store->Commit("t", *answer->token, {store.Piece(prompt.keys[0], 0, {0, 0, 0}, 3).run})
          ->complete);
  EXPECT_TRUE(store.store->Audit().ok());
}

}  // namespace
}  // namespace cairn::node
