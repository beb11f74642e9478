// ReceivedBlocksTest: frames of an honest node, bent or not, into buffers that hold a sentinel, and
// the check that only the keys' bytes are called good.
#pragma once

#include <gmock/gmock.h>

#include <functional>
#include <optional>
#include <vector>

#include "client/cpp/received_blocks.h"
#include "common/rpc/piece_conversion.h"
#include "common/wire/payload_slice.h"
#include "tests/client/cpp/sample_blocks.h"

namespace cairn::testing {

class ReceivedBlocksTest : public ::testing::Test {
 protected:
  static constexpr uint8_t kSentinel = 0xa5;
  static constexpr size_t kBlocks = 3;
  using Frames = std::vector<v1::GetResponse>;

  void Use(const Namespace& fields, const std::vector<PartLayers>& parts = {}) {
    handle_.emplace(HandleOf(fields));
    selection_.emplace(*SegmentSelection::Make(handle_->payload_map(), parts));
    buffer_.assign(kBlocks * handle_->block_bytes(), kSentinel);
    place_.emplace(&handle_->payload_map(), absl::MakeSpan(buffer_));
    received_.emplace(&*selection_, keys_, *place_);
  }

  Frames Honest() { return HonestFrames(handle_->payload_map(), *selection_, keys_); }

  absl::Status Accept(const v1::GetResponse& frame) {
    FrameHeader header;
    for (const v1::Piece& piece : frame.pieces()) header.pieces.push_back(PieceFromProto(piece));
    // Two slices, so that copies cross a border.
    const auto* bytes = reinterpret_cast<const uint8_t*>(frame.payload().data());
    const absl::Span<const uint8_t> all(bytes, frame.payload().size());
    const std::vector<grpc::Slice> slices = {CopySlice(all.first(all.size() / 3)),
                                             CopySlice(all.subspan(all.size() / 3))};
    return received_->Accept(header, SliceCursor(slices));
  }

  // A whole attempt, cut at the first break as a call is.
  GetResult Run(const Frames& frames) {
    EXPECT_TRUE(received_->CheckPlaces().ok());
    received_->BeginAttempt();
    for (const v1::GetResponse& frame : frames) {
      if (absl::Status status = Accept(frame); !status.ok()) {
        return received_->Finish(status);
      }
    }
    return received_->Finish(absl::OkStatus());
  }

  // The promise: good segments are the key's bytes, all others zeros.
  void ExpectNoWrongBytes(const GetResult& result) {
    size_t prefix = 0;
    for (size_t block = 0; block < kBlocks; ++block) {
      bool whole = true;
      for (size_t i = 0; i < selection_->segment_count(); ++i) {
        const SegmentId& id = selection_->At(i).id;
        const absl::Span<uint8_t> bytes = (*place_)(block, id);
        const std::vector<uint8_t> got(bytes.begin(), bytes.end());
        if (result.SegmentGood(block, i)) {
          ASSERT_EQ(got, SyntheticSegment(handle_->payload_map(), keys_[block], id));
        } else {
          ASSERT_EQ(got, std::vector<uint8_t>(got.size(), 0));
          whole = false;
        }
      }
      if (result.blocks[block].good()) {
        ASSERT_TRUE(whole);
      }
      if (whole && prefix == block) ++prefix;
    }
    ASSERT_LE(result.usable_prefix, prefix);
    if (result.status.ok()) {
      for (const FetchedBlock& block : result.blocks) {
        ASSERT_NE(block.failure, BlockFailure::kNotReceived);
      }
    }
  }

  // Bends honest frames and says how the call ended.
  GetResult RunBent(const std::function<void(Frames*)>& bend) {
    Frames frames = Honest();
    bend(&frames);
    GetResult result = Run(frames);
    ExpectNoWrongBytes(result);
    return result;
  }

  std::vector<BlockKey> keys_ = SampleKeys(kBlocks);
  std::optional<NamespaceHandle> handle_;
  std::optional<SegmentSelection> selection_;
  std::vector<uint8_t> buffer_;
  std::optional<ContiguousBlocks> place_;
  std::optional<ReceivedBlocks> received_;
};

}  // namespace cairn::testing
