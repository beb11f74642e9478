// Whatever the layout, the packed frames carry every byte once, in order, within the wire's bounds,
// with the digests of the whole segments.
#include "client/cpp/frame_packer.h"

#include <gmock/gmock.h>

#include <thread>

#include "client/cpp/borrowed_bytes.h"
#include "client/cpp/frame_buffers.h"
#include "common/identity/segment_digest.h"
#include "common/wire/frame_encoder.h"
#include "common/wire/limits.h"
#include "tests/client/cpp/sample_blocks.h"

namespace cairn {
namespace {

using testing::HandleOf;
using testing::SampleKeys;

// Many segments of 64 bytes.
Namespace TinySegments() {
  Namespace fields = testing::SampleNamespace();
  fields.layout.block_tokens = 1;
  fields.layout.groups[0] = {.kind = GroupKind::kFull,
                             .required = 1,
                             .layers = 4000,
                             .dtype = Dtype::kOpaque,
                             .opaque_bytes = 64};
  return fields;
}

class FramePackerTest : public ::testing::Test {
 protected:
  void Use(const Namespace& fields, const std::vector<PartLayers>& parts = {}) {
    handle_.emplace(HandleOf(fields));
    selection_.emplace(*SegmentSelection::Make(handle_->payload_map(), parts));
    const std::vector<BlockKey> keys = SampleKeys(3);
    blocks_ = {{4, keys[0]}, {1, keys[1]}, {2, keys[2]}};
    memory_.resize(5 * handle_->block_bytes());
    place_.emplace(&handle_->payload_map(), absl::MakeSpan(memory_));
    for (const FramePacker::Block& block : blocks_) {
      FillSyntheticBlock(handle_->payload_map(), block.key,
                         absl::MakeSpan(memory_).subspan(block.index * handle_->block_bytes(),
                                                         handle_->block_bytes()));
    }
  }

  // Packs everything from `first` on, copied and not, and checks each frame.
  void PackAndCheck(size_t first) {
    for (const auto payload : {FramePacker::Payload::kCopied, FramePacker::Payload::kNamed}) {
      PackAndCheck(first, payload);
      if (HasFatalFailure()) return;
    }
  }

  // What arrived, by item.
  void PackAndCheck(size_t first, FramePacker::Payload payload) {
    FramePacker packer(&*selection_, blocks_, *place_, first, payload);
    const bool copied = payload == FramePacker::Payload::kCopied;
    std::vector<uint8_t> buffer(copied ? kFramePayloadBytesMax : 0);
    size_t item = first;
    uint32_t offset = 0;
    while (!packer.done()) {
      absl::StatusOr<FramePacker::Frame> frame = packer.Next(absl::MakeSpan(buffer));
      ASSERT_TRUE(frame.ok()) << frame.status();
      ASSERT_LE(frame->payload_bytes, kFramePayloadBytesMax);
      frame->header.token = TokenId();
      ASSERT_LE(FrameHeaderBytes(FrameKind::kWriteRequest, frame->header), kFrameHeaderBytesMax);
      ASSERT_LE(frame->header.pieces.size(), kPiecesPerFrameMax);
      const std::vector<uint8_t> sent = Joined(*frame, copied ? buffer : memory_);
      const uint8_t* at = sent.data();
      for (size_t i = 0; i < frame->header.pieces.size(); ++i) {
        ASSERT_EQ(frame->first_items[i], item);
        CheckPiece(frame->header.pieces[i], packer, &item, &offset, &at);
        if (HasFatalFailure()) return;
      }
      ASSERT_EQ(sent.size(), frame->payload_bytes);
      ASSERT_EQ(at - sent.data(), static_cast<ptrdiff_t>(sent.size()));
      ASSERT_EQ(packer.items_packed(), item);
    }
    EXPECT_EQ(item, packer.item_count());
    EXPECT_EQ(offset, 0u);
  }

  // The frame's runs, which lie in `memory`.
  static std::vector<uint8_t> Joined(const FramePacker::Frame& frame,
                                     const std::vector<uint8_t>& memory) {
    std::vector<uint8_t> joined;
    for (const absl::Span<const uint8_t> run : frame.runs) {
      EXPECT_GE(run.data(), memory.data());
      EXPECT_LE(run.data() + run.size(), memory.data() + memory.size());
      joined.insert(joined.end(), run.begin(), run.end());
    }
    return joined;
  }

  void CheckPiece(const PieceHeader& piece, const FramePacker& packer, size_t* item,
                  uint32_t* offset, const uint8_t** at) {
    uint64_t left = piece.length;
    ASSERT_EQ(piece.offset, *offset);
    for (const uint64_t digest : piece.digests) {
      const FramePacker::Block& block = blocks_[*item / selection_->segment_count()];
      const SegmentSelection::Segment& segment =
          selection_->At(*item % selection_->segment_count());
      ASSERT_EQ(piece.block, block.index);
      const absl::Span<uint8_t> bytes = (*place_)(block.index, segment.id);
      ASSERT_EQ(digest, SegmentDigest(block.key, segment.id, bytes));
      ASSERT_EQ(packer.DigestOf(*item), digest);
      const uint64_t take = std::min<uint64_t>(left, segment.bytes - *offset);
      ASSERT_TRUE(std::equal(*at, *at + take, bytes.begin() + *offset));
      *at += take;
      left -= take;
      *offset += static_cast<uint32_t>(take);
      if (*offset < segment.bytes) break;
      *offset = 0;
      ++*item;
    }
    ASSERT_EQ(left, 0u);
  }

  std::optional<NamespaceHandle> handle_;
  std::optional<SegmentSelection> selection_;
  std::vector<FramePacker::Block> blocks_;
  std::vector<uint8_t> memory_;
  std::optional<ContiguousBlocks> place_;
};

TEST_F(FramePackerTest, CarriesEveryByteOnceForEveryLayout) {
  for (const Namespace& fields : {testing::SampleNamespace(), testing::TwoGroups(),
                                  testing::LargeSegments(), TinySegments()}) {
    Use(fields);
    PackAndCheck(0);
  }
}

TEST_F(FramePackerTest, BeginsAtAnyItem) {
  Use(testing::TwoGroups());
  for (size_t first = 0; first <= 3 * selection_->segment_count(); ++first) PackAndCheck(first);
}

TEST_F(FramePackerTest, PacksOneLayerOfEachBlock) {
  Use(testing::TwoGroups(), {{.group = 0, .slice = 1, .first_layer = 2, .layers = 1}});
  PackAndCheck(0);
}

TEST_F(FramePackerTest, SourceOfAnotherSizeIsRefused) {
  Use(testing::SampleNamespace());
  const std::vector<uint8_t> short_bytes(10);
  const auto source = [&](size_t, const SegmentId&) -> absl::Span<const uint8_t> {
    return short_bytes;
  };
  FramePacker packer(&*selection_, blocks_, source, 0);
  std::vector<uint8_t> buffer(kFramePayloadBytesMax);
  EXPECT_EQ(packer.Next(absl::MakeSpan(buffer)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(FramePackerTest, WhatLiesTogetherIsOneRun) {
  Use(testing::SampleNamespace());
  blocks_.resize(1);
  FramePacker packer(&*selection_, blocks_, *place_, 0, FramePacker::Payload::kNamed);
  const absl::StatusOr<FramePacker::Frame> frame = packer.Next({});
  ASSERT_TRUE(frame.ok()) << frame.status();
  ASSERT_EQ(frame->runs.size(), 1u);
  EXPECT_EQ(frame->runs[0].data(), memory_.data() + blocks_[0].index * handle_->block_bytes());
}

TEST(BorrowedBytesTest, WaitsForTheLastRunAndOutlivesItsMaker) {
  std::shared_ptr<BorrowedBytes> borrowed = BorrowedBytes::Make();
  EXPECT_TRUE(borrowed->AwaitNone(absl::ZeroDuration()));
  std::unique_ptr<PayloadOwner> first = borrowed->Borrow();
  std::unique_ptr<PayloadOwner> last = borrowed->Borrow();
  first = nullptr;
  EXPECT_EQ(borrowed->runs(), 1u);
  EXPECT_FALSE(borrowed->AwaitNone(absl::ZeroDuration()));
  std::thread sender([&last] { last = nullptr; });
  EXPECT_TRUE(borrowed->AwaitNone(absl::InfiniteDuration()));
  sender.join();
  last = borrowed->Borrow();
  borrowed = nullptr;
}

TEST(FrameBuffersTest, BufferComesBackWhenTheSliceIsGoneAndThePoolIsKeptAliveByIt) {
  std::shared_ptr<FrameBuffers> pool = FrameBuffers::Make(1);
  std::unique_ptr<FrameBuffers::Buffer> buffer = pool->Take();
  const uint8_t* memory = buffer->data();
  {
    const grpc::Slice slice = pool->ToSlice(std::move(buffer), 10);
    EXPECT_EQ(slice.begin(), memory);
    EXPECT_EQ(slice.size(), 10u);
  }
  buffer = pool->Take();
  EXPECT_EQ(buffer->data(), memory);
  const grpc::Slice last = pool->ToSlice(std::move(buffer), 1);
  pool.reset();
  EXPECT_EQ(last.begin(), memory);
}

TEST(SegmentSelectionTest, RefusesWhatTheLayoutDoesNotHave) {
  const NamespaceHandle handle = HandleOf(testing::TwoGroups());
  const PayloadMap& map = handle.payload_map();
  const std::vector<PartLayers> wrong[] = {
      {{.group = 2}},
      {{.group = 0, .slice = 2}},
      {{.group = 0, .slice = 0, .first_layer = 3}},
      {{.group = 0, .slice = 0, .first_layer = 1, .layers = 3}},
      {{.group = 0, .slice = 0, .first_layer = 1, .layers = UINT32_MAX}},
      {{.group = 0}, {.group = 0, .first_layer = 2}}};
  for (const std::vector<PartLayers>& parts : wrong) {
    EXPECT_EQ(SegmentSelection::Make(map, parts).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(SegmentSelectionTest, RequiredPartsLeaveOutOptionalGroups) {
  const NamespaceHandle handle = HandleOf(testing::TwoGroups());
  EXPECT_EQ(RequiredParts(handle.payload_map()),
            (std::vector<PartLayers>{{.group = 0, .slice = 0}, {.group = 0, .slice = 1}}));
}

TEST(SyntheticPayloadTest, DiffersByKeyGroupSliceAndLayerAndPadsWithZeros) {
  Namespace fields = testing::TwoGroups();
  fields.layout.block_tokens = 1;
  fields.layout.groups[0].key_dim = 4;  // 32 bytes of K a head pair: half of a tile is padding.
  const NamespaceHandle handle = HandleOf(fields);
  const PayloadMap& map = handle.payload_map();
  std::vector<std::vector<uint8_t>> seen;
  for (const BlockKey& key : SampleKeys(2)) {
    for (size_t i = 0; i < map.segment_count(); ++i) {
      const std::vector<uint8_t> bytes = testing::SyntheticSegment(map, key, map.SegmentAt(i));
      EXPECT_TRUE(IsSyntheticSegment(map, key, map.SegmentAt(i), bytes));
      for (const std::vector<uint8_t>& other : seen) EXPECT_NE(bytes, other);
      seen.push_back(bytes);
    }
  }
  const SegmentTiles& tiles = map.TilesOfGroup(0);
  ASSERT_LT(tiles.key.bytes, PadTile(tiles.key.bytes));
  for (size_t at = tiles.key.bytes; at < PadTile(tiles.key.bytes); ++at) EXPECT_EQ(seen[0][at], 0);
}

}  // namespace
}  // namespace cairn
