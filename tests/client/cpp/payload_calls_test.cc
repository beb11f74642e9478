// Writes and reads through a fake node over real connections: cut streams, refusals, bent bytes.
#include <gmock/gmock.h>

#include "absl/cleanup/cleanup.h"
#include "client/cpp/reserve_call.h"
#include "common/rpc/retry_status.h"
#include "tests/client/cpp/client_fixture.h"

namespace cairn {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Frames = testing::FakeNode::Frames;

class PayloadCallsTest : public testing::ClientTest {
 protected:
  absl::StatusOr<WriteSession> Reserve(const Prompt& prompt, const ReserveOptions& options = {}) {
    return client_->Reserve(*handle_, prompt, 0, prompt.block_count(), options);
  }
};

TEST_F(PayloadCallsTest, PutThenGetGivesTheSameBytes) {
  for (const Namespace& fields :
       {testing::SampleNamespace(), testing::TwoGroups(), testing::LargeSegments()}) {
    Use(fields);
    const Prompt prompt = MakePrompt(3);
    const absl::StatusOr<PutResult> put = Put(prompt);
    ASSERT_TRUE(put.ok()) << put.status();
    EXPECT_TRUE(put->complete());
    EXPECT_EQ(put->blocks_written, 3u);
    EXPECT_EQ(put->bytes_written, 3 * handle_->block_bytes());
    if (handle_->block_bytes() > (1 << 20)) continue;  // The fake serves whole segments.
    const GetResult got = Get(prompt.keys());
    EXPECT_TRUE(got.AllGood()) << got.status;
    EXPECT_EQ(buffer_, Payload(prompt.keys()));
  }
}

TEST_F(PayloadCallsTest, MemoryThatStaysReadableIsSentFromWhereItLies) {
  for (const Namespace& fields :
       {testing::SampleNamespace(), testing::TwoGroups(), testing::LargeSegments()}) {
    Use(fields);
    const Prompt prompt = MakePrompt(3);
    std::vector<uint8_t> bytes = Payload(prompt.keys());
    const absl::Cleanup last = [this] { client_.reset(); };  // It may hold the bytes till then.
    const ContiguousBlocks source(&handle_->payload_map(), absl::MakeSpan(bytes));
    const absl::StatusOr<PutResult> put =
        client_->Put(*handle_, prompt, source, {.source_stays_readable = true});
    ASSERT_TRUE(put.ok()) << put.status();
    EXPECT_TRUE(put->complete());
    if (handle_->block_bytes() > (1 << 20)) continue;  // The fake serves whole segments.
    EXPECT_TRUE(Get(prompt.keys()).AllGood());
    EXPECT_EQ(buffer_, Payload(prompt.keys()));
  }
}

TEST_F(PayloadCallsTest, PutReservesInStepsAndSkipsWhatIsThere) {
  const Prompt head = MakePrompt(3);
  ASSERT_TRUE(Put(head).ok());
  const Prompt prompt = MakePrompt(8);
  const absl::StatusOr<PutResult> put = Put(prompt, {.blocks_per_reserve_max = 2});
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_EQ(put->blocks_already_present, 3u);
  EXPECT_EQ(put->blocks_written, 5u);
  const std::vector<v1::ReserveRequest> reserves = node_->reserves();
  ASSERT_THAT(reserves, SizeIs(5));
  EXPECT_EQ(reserves[1].parent_key(), "");
  EXPECT_EQ(reserves[2].parent_key(), std::string(prompt.keys()[1].view()));
  EXPECT_EQ(reserves[2].tokens(0), 32u);
}

TEST_F(PayloadCallsTest, SecondRegionNamesTheFirstOnesLastBlock) {
  std::vector<uint32_t> tokens(32, 7);
  const Region regions[] = {
      {.scope = {"acme", "", ""},
       .tokens = absl::MakeConstSpan(tokens).first(16),
       .external_ids = {}},
      {.scope = {"acme", "lora@1", ""}, .tokens = absl::MakeConstSpan(tokens), .external_ids = {}}};
  const absl::StatusOr<Prompt> prompt = client_->MakePrompt(*handle_, regions);
  ASSERT_TRUE(prompt.ok());
  ASSERT_TRUE(Put(*prompt, {.blocks_per_reserve_max = 1}).ok());
  const std::vector<v1::ReserveRequest> reserves = node_->reserves();
  ASSERT_THAT(reserves, SizeIs(3));
  const std::string last(prompt->keys()[0].view());
  EXPECT_EQ(reserves[0].region_parent_key(), "");
  EXPECT_EQ(reserves[1].region_parent_key(), last);
  EXPECT_EQ(reserves[1].parent_key(), "");
  EXPECT_EQ(reserves[2].region_parent_key(), last);
  EXPECT_EQ(reserves[2].parent_key(), std::string(prompt->keys()[1].view()));
  EXPECT_EQ(reserves[1].scope().adapter(), "lora@1");
  EXPECT_EQ(client_->Reserve(*handle_, *prompt, 0, 2).status().code(),
            absl::StatusCode::kInvalidArgument)
      << "across regions";
}

// A node that lists public prefixes wants the end of one in each reserve.
TEST_F(PayloadCallsTest, PublicRegionsAreReservedWhole) {
  const Prompt prompt = MakePrompt(4, "public");
  ASSERT_TRUE(Put(prompt, {.blocks_per_reserve_max = 1})->complete());
  ASSERT_THAT(node_->reserves(), SizeIs(1));
  EXPECT_THAT(PublicEndsOf(*handle_, prompt), ElementsAre(prompt.keys().back()));
  EXPECT_THAT(PublicEndsOf(*handle_, MakePrompt(4)), IsEmpty());
}

TEST_F(PayloadCallsTest, PutBeginsWhereItIsTold) {
  const Prompt prompt = MakePrompt(4);
  ASSERT_TRUE(Put(prompt, {.first_block = 3})->complete());
  EXPECT_EQ(node_->reserves().at(0).parent_key(), prompt.keys()[2].view());
  EXPECT_EQ(node_->blocks_present(), 1u);
  EXPECT_EQ(Put(prompt, {.first_block = 4})->blocks_total, 0u);
  EXPECT_EQ(Put(prompt, {.first_block = 5}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(PayloadCallsTest, ReserveRepeatsUnderTheSameIdAndAfterNoSpaceUnderANewOne) {
  node_->LoseAnswer("Reserve");
  node_->AnswerReserve({v1::RESERVE_OUTCOME_NO_SPACE, v1::RESERVE_OUTCOME_NO_SPACE});
  const Prompt prompt = MakePrompt(1);
  const absl::StatusOr<WriteSession> session = Reserve(prompt, {.wait_when_exhausted = true});
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_TRUE(session->token().has_value());
  const std::vector<std::string> ids = node_->RequestIds("Reserve");
  ASSERT_THAT(ids, SizeIs(3));
  EXPECT_EQ(ids[0], ids[1]);
  EXPECT_NE(ids[1], ids[2]);
  EXPECT_GE(wait_.waits()[1], absl::Milliseconds(500));
}

TEST_F(PayloadCallsTest, NoSpaceIsAnAnswerWhenNotWaitedFor) {
  node_->AnswerReserve({v1::RESERVE_OUTCOME_NO_SPACE});
  absl::StatusOr<WriteSession> session = Reserve(MakePrompt(1));
  ASSERT_TRUE(session.ok());
  EXPECT_FALSE(session->token().has_value());
  EXPECT_EQ(session->answers()[0].outcome(), v1::RESERVE_OUTCOME_NO_SPACE);
  EXPECT_EQ(session->retry_after(), absl::Milliseconds(500));
  EXPECT_EQ(session->Commit().status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(PayloadCallsTest, ADeclinedBlockIsNoErrorAndIsNotWaitedFor) {
  node_->AnswerReserve({v1::RESERVE_OUTCOME_DECLINED});
  const absl::StatusOr<PutResult> put = Put(MakePrompt(1), {.wait_when_exhausted = true});
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_EQ(put->stopped_by, v1::RESERVE_OUTCOME_DECLINED);
  EXPECT_EQ(put->blocks_written, 0u);
  EXPECT_FALSE(put->complete());
  EXPECT_EQ(node_->Calls("Reserve"), 1);
}

TEST_F(PayloadCallsTest, NoSpaceForeverIsAnAnswerAfterBoundedAttempts) {
  node_->AnswerReserve(std::vector<v1::ReserveOutcome>(100, v1::RESERVE_OUTCOME_QUOTA));
  const absl::StatusOr<PutResult> put = Put(MakePrompt(1), {.wait_when_exhausted = true});
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_EQ(put->stopped_by, v1::RESERVE_OUTCOME_QUOTA);
  EXPECT_FALSE(put->complete());
  EXPECT_EQ(node_->Calls("Reserve"), static_cast<int>(RetryOptions().attempts_max));
}

TEST_F(PayloadCallsTest, LayersWrittenOneByOneByTwoRanksMakeABlock) {
  const Prompt prompt = MakePrompt(1);
  absl::StatusOr<WriteSession> first = Reserve(prompt);
  ASSERT_TRUE(first.ok()) << first.status();
  WriteSession second = client_->AttachWrite(*handle_, first->ticket());
  std::vector<uint8_t> bytes = Payload(prompt.keys());
  const ContiguousBlocks source(&handle_->payload_map(), absl::MakeSpan(bytes));
  for (uint32_t layer = 0; layer < 3; ++layer) {
    const PartLayers mine[] = {{.group = 0, .slice = 0, .first_layer = layer, .layers = 1}};
    const PartLayers other[] = {{.group = 0, .slice = 1, .first_layer = layer, .layers = 1}};
    ASSERT_TRUE(first->Write({0}, mine, source).ok());
    ASSERT_TRUE(second.Write({0}, other, source).ok());
  }
  const absl::StatusOr<CommitResult> half = first->Commit();
  ASSERT_TRUE(half.ok());
  EXPECT_FALSE(half->complete);
  EXPECT_THAT(half->missing, SizeIs(1));
  EXPECT_EQ(node_->blocks_present(), 0u);
  const absl::StatusOr<CommitResult> whole = second.Commit();
  ASSERT_TRUE(whole.ok());
  EXPECT_TRUE(whole->complete);
  EXPECT_EQ(node_->blocks_present(), 1u);
}

TEST_F(PayloadCallsTest, DroppedSessionAbortsUnlessCompleteOrAttached) {
  const Prompt prompt = MakePrompt(1);
  { ASSERT_TRUE(Reserve(prompt).ok()); }
  EXPECT_EQ(node_->Calls("Abort"), 1);
  { ASSERT_TRUE(Reserve(prompt, {.abort_on_destroy = false}).ok()); }
  EXPECT_EQ(node_->Calls("Abort"), 1);
  {
    absl::StatusOr<WriteSession> session = Reserve(prompt);
    ASSERT_TRUE(session.ok());
    { const WriteSession attached = client_->AttachWrite(*handle_, session->ticket()); }
    EXPECT_EQ(node_->Calls("Abort"), 1);
    EXPECT_TRUE(session->Abort().ok());
  }
  EXPECT_EQ(node_->Calls("Abort"), 2);
  ASSERT_TRUE(Put(prompt).ok());
  EXPECT_EQ(node_->Calls("Abort"), 2);
}

TEST_F(PayloadCallsTest, CutWriteGoesOnWhereItWasAnswered) {
  Use(testing::LargeSegments());  // Six segments of 1.5 MiB, nine frames.
  node_->CutNextWriteAfter(4);
  const Prompt prompt = MakePrompt(3);
  const absl::StatusOr<PutResult> put = Put(prompt);
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_TRUE(put->complete());
  EXPECT_EQ(node_->Calls("Write"), 2);
  // Two segments (three frames) were answered whole; the rest of the third came again.
  EXPECT_EQ(node_->frames_written(), 4u + 6u);
}

TEST_F(PayloadCallsTest, NodeThatDoesNotAdmitIsWaitedForOnlyWhenAsked) {
  const absl::Status full = WithRetryAfter(absl::ResourceExhaustedError("full"), absl::Seconds(2));
  node_->FailNext("Write", full);
  EXPECT_EQ(Put(MakePrompt(1)).status().code(), absl::StatusCode::kResourceExhausted);
  node_->FailNext("Write", full);
  EXPECT_TRUE(Put(MakePrompt(1), {.wait_when_exhausted = true}).ok());
  EXPECT_GE(wait_.waits().back(), absl::Seconds(2));
}

TEST_F(PayloadCallsTest, RefusedPiecesAreListedAndNotCommitted) {
  node_->RefusePieces(true);
  const Prompt prompt = MakePrompt(2);
  absl::StatusOr<WriteSession> session = Reserve(prompt);
  ASSERT_TRUE(session.ok());
  std::vector<uint8_t> bytes = Payload(prompt.keys());
  const ContiguousBlocks source(&handle_->payload_map(), absl::MakeSpan(bytes));
  const absl::StatusOr<WriteResult> written = session->WriteAll(source);
  ASSERT_TRUE(written.ok()) << written.status();
  ASSERT_THAT(written->errors, SizeIs(1));
  EXPECT_EQ(written->errors[0].block, 0u);
  EXPECT_EQ(written->errors[0].first, (SegmentId{0, 0, 0}));
  EXPECT_EQ(written->errors[0].layers, 3u);
  EXPECT_EQ(written->errors[0].status.code(), absl::StatusCode::kAborted);
  const absl::StatusOr<CommitResult> committed = session->Commit();
  ASSERT_TRUE(committed.ok()) << committed.status();
  EXPECT_EQ(committed->errors_total, 0u);
  EXPECT_EQ(committed->blocks_present, 1u);
  EXPECT_FALSE(committed->complete);
}

TEST_F(PayloadCallsTest, NodeThatAnswersTooOftenBreaksTheWrite) {
  node_->AnswerTwice(true);
  EXPECT_EQ(Put(MakePrompt(1)).status().code(), absl::StatusCode::kInternal);
}

TEST_F(PayloadCallsTest, WriteOfWhatIsNotReservedAsksNobody) {
  const Prompt prompt = MakePrompt(1);
  absl::StatusOr<WriteSession> session = Reserve(prompt);
  ASSERT_TRUE(session.ok());
  const auto source = [](size_t, const SegmentId&) { return absl::Span<const uint8_t>(); };
  EXPECT_EQ(session->Write({1}, {}, source).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(session->Write({0, 0}, {}, source).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(session->Write({0}, {{PartLayers{.group = 9}}}, source).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(session->Write({0}, {}, source).status().code(), absl::StatusCode::kInvalidArgument)
      << "source of another size";
  EXPECT_EQ(node_->Calls("Write"), 0);
}

TEST_F(PayloadCallsTest, LostCommitAnswerIsAskedForAgain) {
  node_->LoseAnswer("Commit");
  const absl::StatusOr<PutResult> put = Put(MakePrompt(1));
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_TRUE(put->complete());
  EXPECT_EQ(node_->Calls("Commit"), 2);
}

TEST_F(PayloadCallsTest, MissingBlockIsAMiss) {
  const Prompt prompt = MakePrompt(3);
  ASSERT_TRUE(Put(prompt).ok());
  ASSERT_TRUE(client_->Delete(handle_->fingerprint(), {prompt.keys()[1]}).ok());
  const GetResult got = Get(prompt.keys());
  EXPECT_TRUE(got.status.ok()) << got.status;
  EXPECT_EQ(got.usable_prefix, 1u);
  EXPECT_EQ(got.blocks[1].failure, BlockFailure::kNotThere);
  EXPECT_EQ(got.blocks[1].state, v1::BLOCK_STATE_NEVER_SEEN);
  EXPECT_TRUE(got.blocks[2].good());
  EXPECT_TRUE(node_->mismatches().empty());
}

TEST_F(PayloadCallsTest, WrongBytesAreZeroedReportedAndNeverGood) {
  const Prompt prompt = MakePrompt(2);
  ASSERT_TRUE(Put(prompt).ok());
  node_->BendGet([](Frames* frames) { (*frames)[1].mutable_payload()->at(0) ^= 1; });
  const GetResult got = Get(prompt.keys());
  EXPECT_EQ(got.blocks[0].failure, BlockFailure::kMismatch);
  EXPECT_TRUE(got.blocks[1].good());
  EXPECT_EQ(got.usable_prefix, 0u);
  EXPECT_EQ(got.mismatches_confirmed, 1u);
  ASSERT_THAT(node_->mismatches(), SizeIs(1));
  EXPECT_EQ(node_->mismatches()[0].key(), std::string(prompt.keys()[0].view()));
  EXPECT_EQ(node_->mismatches()[0].layer(), 1u);
  const PayloadMap& map = handle_->payload_map();
  const size_t bad = *map.FindSegment({0, 0, 1});
  EXPECT_THAT(absl::MakeSpan(buffer_).subspan(map.SegmentOffset(bad), map.SegmentBytesAt(bad)),
              Each(0));
}

TEST_F(PayloadCallsTest, BrokenAnswersEndTheGetAndLeaveNoSentinel) {
  const Prompt prompt = MakePrompt(2);
  ASSERT_TRUE(Put(prompt).ok());
  const std::function<void(Frames*)> bends[] = {
      [](Frames* frames) { frames->push_back(frames->front()); },
      [](Frames* frames) { frames->pop_back(); },
      [](Frames* frames) {
        std::swap((*frames)[0].mutable_pieces(0)->mutable_digests()->at(0),
                  (*frames)[1].mutable_pieces(0)->mutable_digests()->at(0));
      },
      [](Frames* frames) { (*frames)[0].mutable_payload()->pop_back(); },
      [](Frames* frames) { (*frames)[0].mutable_payload()->append("x"); },
      [](Frames* frames) { (*frames)[0].Clear(); },
      [](Frames* frames) { (*frames)[0].mutable_pieces(0)->set_block(9); },
      [](Frames* frames) { frames->clear(); },
  };
  for (size_t i = 0; i < std::size(bends); ++i) {
    node_->BendGet(bends[i]);
    const GetResult got = Get(prompt.keys());
    EXPECT_FALSE(got.AllGood()) << i;
    const PayloadMap& map = handle_->payload_map();
    for (size_t block = 0; block < 2; ++block) {
      for (size_t s = 0; s < map.segment_count(); ++s) {
        const absl::Span<uint8_t> bytes = absl::MakeSpan(buffer_).subspan(
            block * map.block_bytes() + map.SegmentOffset(s), map.SegmentBytesAt(s));
        if (got.SegmentGood(block, s)) {
          EXPECT_TRUE(IsSyntheticSegment(map, prompt.keys()[block], map.SegmentAt(s), bytes)) << i;
        } else {
          EXPECT_THAT(bytes, Each(0)) << i;
        }
      }
    }
  }
}

TEST_F(PayloadCallsTest, CutGetFetchesOnlyWhatIsMissing) {
  const Prompt prompt = MakePrompt(3);
  ASSERT_TRUE(Put(prompt).ok());
  node_->CutNextGetAfter(10);  // Block 0 has ten segments.
  const GetResult got = Get(prompt.keys());
  EXPECT_TRUE(got.AllGood()) << got.status;
  EXPECT_EQ(buffer_, Payload(prompt.keys()));
  ASSERT_THAT(node_->gets(), SizeIs(2));
  EXPECT_EQ(node_->gets()[1].keys(),
            std::string(prompt.keys()[1].view()) + std::string(prompt.keys()[2].view()));
}

TEST_F(PayloadCallsTest, NodeThatIsGoneLeavesZerosAndSaysSo) {
  const Prompt prompt = MakePrompt(1);
  node_->Stop();
  const GetResult got = Get(prompt.keys());
  EXPECT_EQ(got.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(got.blocks[0].failure, BlockFailure::kNotReceived);
  EXPECT_THAT(buffer_, Each(0));
}

TEST_F(PayloadCallsTest, LeaseAndPartsGoWithTheRequest) {
  const Prompt prompt = MakePrompt(1);
  ASSERT_TRUE(Put(prompt).ok());
  (void)Get(prompt.keys(), {.lease = LeaseId(), .parts = {{.group = 0, .slice = 1, .layers = 2}}});
  const v1::GetRequest request = node_->gets()[0];
  EXPECT_THAT(request.lease(), SizeIs(16));
  ASSERT_EQ(request.parts_size(), 1);
  EXPECT_EQ(request.parts(0).slice(), 1u);
  EXPECT_EQ(request.parts(0).layers(), 2u);
}

TEST_F(PayloadCallsTest, SameKeyTwiceAsksNobody) {
  const Prompt prompt = MakePrompt(1);
  const GetResult got = Get({prompt.keys()[0], prompt.keys()[0]});
  EXPECT_EQ(got.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(node_->Calls("Get"), 0);
}

}  // namespace
}  // namespace cairn
