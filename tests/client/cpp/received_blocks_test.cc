// Frames of an honest node, then the same frames bent in every way, put into buffers that hold a
// sentinel: what is called good must be the key's bytes, and everything else zeros.
#include "client/cpp/received_blocks.h"

#include <gmock/gmock.h>

#include <functional>
#include <random>

#include "tests/client/cpp/received_blocks_fixture.h"

namespace cairn {
namespace {

using testing::HandleOf;
using testing::HonestFrames;
using testing::SampleKeys;

using Frames = std::vector<v1::GetResponse>;

class ReceivedBlocksTest : public testing::ReceivedBlocksTest {};

TEST_F(ReceivedBlocksTest, HonestFramesAreAllGood) {
  for (const Namespace& fields :
       {testing::SampleNamespace(), testing::TwoGroups(), testing::LargeSegments()}) {
    Use(fields);
    const GetResult result = Run(Honest());
    EXPECT_TRUE(result.AllGood()) << result.status;
    EXPECT_EQ(result.bytes_verified, kBlocks * handle_->block_bytes());
    ExpectNoWrongBytes(result);
  }
}

TEST_F(ReceivedBlocksTest, WholeLayersInOnePieceAreGood) {
  Use(testing::TwoGroups());
  Frames frames = Honest();
  v1::GetResponse& frame = frames[0];
  // The first part's three layers.
  v1::Piece* first = frame.mutable_pieces(0);
  first->set_length(3 * first->length());
  first->add_digests(frame.pieces(1).digests(0));
  first->add_digests(frame.pieces(2).digests(0));
  frame.mutable_pieces()->DeleteSubrange(1, 2);
  const GetResult result = Run(frames);
  EXPECT_TRUE(result.AllGood()) << result.status;
  ExpectNoWrongBytes(result);
}

TEST_F(ReceivedBlocksTest, OnlyWhatWasSelectedIsTouched) {
  Use(testing::TwoGroups(), {{.group = 0, .slice = 1, .first_layer = 1, .layers = 1}});
  const GetResult result = Run(Honest());
  EXPECT_TRUE(result.AllGood()) << result.status;
  EXPECT_EQ(result.segments_verified, kBlocks);
  EXPECT_EQ((*place_)(0, SegmentId{0, 0, 0})[0], kSentinel);
}

TEST_F(ReceivedBlocksTest, FlippedBitMakesTheBlockUnusableAndKeepsTheOthers) {
  Use(testing::SampleNamespace());
  const GetResult result =
      RunBent([](Frames* frames) { (*frames)[0].mutable_payload()->at(5) ^= 1; });
  EXPECT_TRUE(result.status.ok());
  EXPECT_EQ(result.blocks[0].failure, BlockFailure::kMismatch);
  EXPECT_TRUE(result.blocks[1].good());
  EXPECT_EQ(result.usable_prefix, 0u);
  ASSERT_EQ(result.mismatches.size(), 1u);
  EXPECT_EQ(result.mismatches[0].key, keys_[0]);
  EXPECT_EQ(result.mismatches[0].id, (SegmentId{0, 0, 0}));
}

TEST_F(ReceivedBlocksTest, BytesOfAnotherKeyWithTheirOwnDigestAreAMismatch) {
  Use(testing::SampleNamespace());
  std::vector<BlockKey> others = SampleKeys(kBlocks + 1);
  others.erase(others.begin());
  const GetResult result = Run(HonestFrames(handle_->payload_map(), *selection_, others));
  ExpectNoWrongBytes(result);
  EXPECT_EQ(result.mismatches_total, kBlocks * selection_->segment_count());
  EXPECT_EQ(result.segments_verified, 0u);
}

TEST_F(ReceivedBlocksTest, SwappedLayersAreAMismatch) {
  Use(testing::SampleNamespace());
  const GetResult result = RunBent([](Frames* frames) {
    (*frames)[0].mutable_pieces(0)->set_layer(1);
    (*frames)[0].mutable_pieces(1)->set_layer(0);
  });
  EXPECT_EQ(result.blocks[0].failure, BlockFailure::kMismatch);
}

TEST_F(ReceivedBlocksTest, TruncatedStreamIsAnErrorAndZeros) {
  Use(testing::SampleNamespace());
  const GetResult result = RunBent([](Frames* frames) {
    v1::GetResponse& frame = frames->back();
    const v1::Piece last = frame.pieces(frame.pieces_size() - 1);
    frame.mutable_pieces()->RemoveLast();
    frame.mutable_payload()->resize(frame.payload().size() - last.length());
  });
  EXPECT_EQ(result.status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(result.blocks[kBlocks - 1].failure, BlockFailure::kNotReceived);
  EXPECT_EQ(result.usable_prefix, kBlocks - 1);
}

TEST_F(ReceivedBlocksTest, FailedCallKeepsWhatWasVerified) {
  Use(testing::LargeSegments());
  received_->BeginAttempt();
  const Frames frames = Honest();
  for (size_t i = 0; i < 4; ++i) ASSERT_TRUE(Accept(frames[i]).ok());
  const GetResult result = received_->Finish(absl::UnavailableError("cut"));
  EXPECT_EQ(result.status, absl::UnavailableError("cut"));
  EXPECT_TRUE(result.blocks[0].good());
  EXPECT_EQ(result.blocks[1].failure, BlockFailure::kNotReceived);
  ExpectNoWrongBytes(result);
}

TEST_F(ReceivedBlocksTest, DuplicatePieceBreaksTheCall) {
  Use(testing::SampleNamespace());
  const GetResult result = RunBent([](Frames* frames) { frames->push_back((*frames)[0]); });
  EXPECT_EQ(result.status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(result.usable_prefix, kBlocks);
}

TEST_F(ReceivedBlocksTest, RangesOutOfOrderBreakTheCall) {
  Use(testing::LargeSegments());
  const GetResult result = RunBent([](Frames* frames) { std::swap((*frames)[0], (*frames)[1]); });
  EXPECT_EQ(result.status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(result.segments_verified, 0u);
}

TEST_F(ReceivedBlocksTest, DigestThatChangesWithinASegmentBreaksTheCall) {
  Use(testing::LargeSegments());
  const GetResult result =
      RunBent([](Frames* frames) { (*frames)[1].mutable_pieces(0)->set_digests(0, 1); });
  EXPECT_EQ(result.status.code(), absl::StatusCode::kInternal);
}

TEST_F(ReceivedBlocksTest, PiecesThatWereNotAskedForBreakTheCall) {
  const std::function<void(v1::Piece*)> bends[] = {
      [](v1::Piece* piece) { piece->set_block(kBlocks); },
      [](v1::Piece* piece) { piece->set_block(UINT32_MAX); },
      [](v1::Piece* piece) { piece->set_group(7); },
      [](v1::Piece* piece) { piece->set_slice(9); },
      [](v1::Piece* piece) { piece->set_layer(UINT32_MAX); },
      [](v1::Piece* piece) { piece->set_offset(64); },
      [](v1::Piece* piece) { piece->set_offset(UINT32_MAX); },
      [](v1::Piece* piece) { piece->set_length(0); },
      [](v1::Piece* piece) { piece->set_length(UINT32_MAX); },
      [](v1::Piece* piece) { piece->set_length(piece->length() + 1); },
      [](v1::Piece* piece) { piece->clear_digests(); },
      [](v1::Piece* piece) { piece->add_digests(1); },
      [](v1::Piece* piece) { piece->set_state(v1::BLOCK_STATE_EVICTED); },
  };
  for (size_t i = 0; i < std::size(bends); ++i) {
    Use(testing::SampleNamespace());
    const GetResult result =
        RunBent([&](Frames* frames) { bends[i]((*frames)[0].mutable_pieces(0)); });
    EXPECT_EQ(result.status.code(), absl::StatusCode::kInternal) << i;
    EXPECT_EQ(result.segments_verified, 0u) << i;
  }
}

TEST_F(ReceivedBlocksTest, MorePayloadThanPiecesSayBreaksTheCall) {
  Use(testing::SampleNamespace());
  const GetResult result =
      RunBent([](Frames* frames) { frames->back().mutable_payload()->append("more"); });
  EXPECT_EQ(result.status.code(), absl::StatusCode::kInternal);
}

TEST_F(ReceivedBlocksTest, MissingBlockIsAMissWithItsReason) {
  Use(testing::SampleNamespace());
  Frames frames = HonestFrames(handle_->payload_map(), *selection_, {keys_[0]});
  frames.emplace_back();
  for (uint32_t block = 1; block < kBlocks; ++block) {
    v1::Piece* piece = frames.back().add_pieces();
    piece->set_block(block);
    piece->set_state(v1::BLOCK_STATE_EVICTED);
  }
  const GetResult result = Run(frames);
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.usable_prefix, 1u);
  EXPECT_EQ(result.blocks[1].failure, BlockFailure::kNotThere);
  EXPECT_EQ(result.blocks[1].state, v1::BLOCK_STATE_EVICTED);
  ExpectNoWrongBytes(result);
}

TEST_F(ReceivedBlocksTest, SegmentsThatWereNeverWrittenLeaveTheOthersGood) {
  Use(testing::TwoGroups());
  Frames frames = Honest();
  frames.resize(1);
  // The optional group of block 0 is not there; the node says so once for each part.
  auto* pieces = frames[0].mutable_pieces();
  std::string payload = frames[0].payload();
  size_t at = 0;
  for (int i = 0; i < pieces->size(); ++i) {
    const bool drop = (*pieces)[i].block() == 0 && (*pieces)[i].group() == 1;
    const size_t length = (*pieces)[i].length();
    if (!drop) {
      at += length;
      continue;
    }
    payload.erase(at, length);
    if ((*pieces)[i].layer() == 0) {
      (*pieces)[i].set_length(0);
      (*pieces)[i].clear_digests();
      (*pieces)[i].set_state(v1::BLOCK_STATE_NEVER_SEEN);
    } else {
      pieces->DeleteSubrange(i--, 1);
    }
  }
  frames[0].set_payload(payload);
  const GetResult result = Run(frames);
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.blocks[0].failure, BlockFailure::kNotThere);
  EXPECT_TRUE(result.SegmentGood(0, 0));
  EXPECT_FALSE(result.SegmentGood(0, selection_->segment_count() - 1));
  EXPECT_TRUE(result.blocks[1].good());
  ExpectNoWrongBytes(result);
}

TEST_F(ReceivedBlocksTest, BlockThatGoesAwayHalfWayIsDroppedWhole) {
  Use(testing::SampleNamespace());
  Frames frames = Honest();
  v1::GetResponse& frame = frames[0];
  frame.mutable_payload()->resize(frame.pieces(0).length());
  frame.mutable_pieces()->DeleteSubrange(1, frame.pieces_size() - 1);
  for (uint32_t block = 0; block < kBlocks; ++block) {
    v1::Piece* piece = frame.add_pieces();
    piece->set_block(block);
    piece->set_state(v1::BLOCK_STATE_DELETED);
  }
  const GetResult result = Run(frames);
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.blocks[0].state, v1::BLOCK_STATE_DELETED);
  EXPECT_EQ(result.segments_verified, 0u);
  ExpectNoWrongBytes(result);
}

TEST_F(ReceivedBlocksTest, EndlessMissesBreakTheCall) {
  Use(testing::SampleNamespace());
  received_->BeginAttempt();
  v1::GetResponse frame;
  frame.add_pieces()->set_state(v1::BLOCK_STATE_EVICTED);
  absl::Status status;
  for (int i = 0; i < 100 && status.ok(); ++i) status = Accept(frame);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
}

TEST_F(ReceivedBlocksTest, SecondAttemptAsksOnlyForWhatIsUnsettled) {
  Use(testing::LargeSegments());
  EXPECT_EQ(received_->BeginAttempt(), (std::vector<size_t>{0, 1, 2}));
  const Frames frames = Honest();
  for (size_t i = 0; i < 4; ++i) ASSERT_TRUE(Accept(frames[i]).ok());
  EXPECT_EQ(received_->BeginAttempt(), (std::vector<size_t>{1, 2}));
  const Frames rest = HonestFrames(handle_->payload_map(), *selection_, {keys_[1], keys_[2]});
  for (const v1::GetResponse& frame : rest) ASSERT_TRUE(Accept(frame).ok());
  const GetResult result = received_->Finish(absl::OkStatus());
  EXPECT_TRUE(result.AllGood()) << result.status;
  ExpectNoWrongBytes(result);
}

TEST_F(ReceivedBlocksTest, BufferOfAnotherSizeIsRefused) {
  Use(testing::SampleNamespace());
  const ContiguousBlocks short_place(&handle_->payload_map(),
                                     absl::MakeSpan(buffer_).first(handle_->block_bytes()));
  const ReceivedBlocks received(&*selection_, keys_, short_place);
  EXPECT_EQ(received.CheckPlaces().code(), absl::StatusCode::kInvalidArgument);
}

// Bends one thing at random.
void BendAtRandom(std::mt19937_64* random, Frames* frames) {
  v1::GetResponse& frame = (*frames)[(*random)() % frames->size()];
  if (frame.pieces_size() == 0) return;
  v1::Piece& piece = *frame.mutable_pieces(
      static_cast<int>((*random)() % static_cast<uint64_t>(frame.pieces_size())));
  const auto small = static_cast<uint32_t>((*random)() % 4);
  switch ((*random)() % 10) {
    case 0:
      piece.set_block(small);
      break;
    case 1:
      piece.set_group(small);
      break;
    case 2:
      piece.set_slice(small);
      break;
    case 3:
      piece.set_layer(small);
      break;
    case 4:
      piece.set_offset(64 * small);
      break;
    case 5:
      piece.set_length(piece.length() - std::min(piece.length(), 64 * small));
      break;
    case 6:
      piece.set_state(static_cast<v1::BlockState>(small));
      break;
    case 7:
      if (!frame.payload().empty()) {
        frame.mutable_payload()->at((*random)() % frame.payload().size()) ^= 1;
      }
      break;
    case 8:
      *frame.add_pieces() = piece;
      break;
    default:
      frame.mutable_pieces()->SwapElements(0, frame.pieces_size() - 1);
      break;
  }
}

TEST_F(ReceivedBlocksTest, NeverWrongBytesWhateverIsBent) {
  size_t complete = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    std::mt19937_64 random(seed);
    Use(testing::TwoGroups());
    const GetResult result = RunBent([&](Frames* frames) {
      for (uint64_t i = random() % 3; i > 0; --i) BendAtRandom(&random, frames);
    });
    if (result.AllGood()) ++complete;
    ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
  }
  EXPECT_GT(complete, 500u);
  EXPECT_LT(complete, 1500u);
}

}  // namespace
}  // namespace cairn
