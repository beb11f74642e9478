#include "client/cpp/frame_packer.h"

#include <algorithm>
#include <cstring>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/identity/segment_digest.h"
#include "common/wire/limits.h"

namespace cairn {
namespace {

// Bounds that keep any header within kFrameHeaderBytesMax.
constexpr size_t kPiecesInFrameMax = 512;
constexpr size_t kDigestsInFrameMax = 3072;
constexpr size_t kPieceHeaderBytesMax = 48;
constexpr size_t kTokenFieldBytes = 18;
static_assert(kPiecesInFrameMax <= kPiecesPerFrameMax);
static_assert(kPiecesInFrameMax * kPieceHeaderBytesMax + kDigestsInFrameMax * sizeof(uint64_t) +
                  kTokenFieldBytes <=
              kFrameHeaderBytesMax);

}  // namespace

FramePacker::FramePacker(const SegmentSelection* selection, absl::Span<const Block> blocks,
                         SegmentSource source, size_t first_item, Payload payload)
    : selection_(selection),
      blocks_(blocks),
      source_(source),
      payload_(payload),
      first_item_(first_item),
      item_(first_item) {
  CAIRN_CHECK(first_item <= item_count());
}

uint64_t FramePacker::DigestOf(size_t item) const {
  CAIRN_CHECK(item >= first_item_ && item - first_item_ < digests_.size());
  return digests_[item - first_item_];
}

absl::StatusOr<absl::Span<const uint8_t>> FramePacker::Bytes(size_t item) const {
  const SegmentSelection::Segment& segment = selection_->At(item % selection_->segment_count());
  const Block& block = blocks_[item / selection_->segment_count()];
  const absl::Span<const uint8_t> bytes = source_(block.index, segment.id);
  if (bytes.size() != segment.bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("source for block ", block.index, ", group ", segment.id.group, ", slice ",
                     segment.id.slice, ", layer ", segment.id.layer, " gave ", bytes.size(),
                     " bytes; the segment has ", segment.bytes));
  }
  return bytes;
}

PieceHeader FramePacker::PieceOf(size_t item) const {
  const SegmentId& id = selection_->At(item % selection_->segment_count()).id;
  PieceHeader piece;
  piece.block = blocks_[item / selection_->segment_count()].index;
  piece.group = id.group;
  piece.slice = id.slice;
  piece.layer = id.layer;
  return piece;
}

bool FramePacker::Fits(const Frame& frame, uint64_t bytes) const {
  return frame.payload_bytes + bytes <= kFramePayloadBytesMax &&
         frame.header.pieces.size() < kPiecesInFrameMax && digests_in_frame_ < kDigestsInFrameMax;
}

void FramePacker::AddWhole(absl::Span<const uint8_t> bytes, absl::Span<uint8_t> buffer,
                           Frame* frame) {
  const PieceHeader next = PieceOf(item_);
  std::vector<PieceHeader>& pieces = frame->header.pieces;
  const bool continues = !pieces.empty() && pieces.back().offset == 0 &&
                         pieces.back().block == next.block && pieces.back().group == next.group &&
                         pieces.back().slice == next.slice &&
                         pieces.back().layer + pieces.back().digests.size() == next.layer &&
                         pieces.back().length == pieces.back().digests.size() * bytes.size();
  if (!continues) {
    pieces.push_back(next);
    frame->first_items.push_back(item_);
  }
  pieces.back().digests.push_back(digests_.back());
  pieces.back().length += static_cast<uint32_t>(bytes.size());
  AddBytes(bytes, buffer, frame);
  ++digests_in_frame_;
  ++item_;
}

void FramePacker::AddRange(absl::Span<const uint8_t> bytes, absl::Span<uint8_t> buffer,
                           Frame* frame) {
  const size_t take =
      std::min(bytes.size() - offset_, size_t{kFramePayloadBytesMax} - frame->payload_bytes);
  PieceHeader piece = PieceOf(item_);
  piece.offset = offset_;
  piece.length = static_cast<uint32_t>(take);
  piece.digests.push_back(digests_.back());
  frame->header.pieces.push_back(piece);
  frame->first_items.push_back(item_);
  AddBytes(bytes.subspan(offset_, take), buffer, frame);
  ++digests_in_frame_;
  offset_ += static_cast<uint32_t>(take);
  if (offset_ < bytes.size()) return;
  offset_ = 0;
  ++item_;
}

void FramePacker::AddBytes(absl::Span<const uint8_t> bytes, absl::Span<uint8_t> buffer,
                           Frame* frame) {
  if (payload_ == Payload::kCopied) {
    std::memcpy(buffer.data() + frame->payload_bytes, bytes.data(), bytes.size());
    bytes = buffer.subspan(frame->payload_bytes, bytes.size());
  }
  frame->payload_bytes += bytes.size();
  std::vector<absl::Span<const uint8_t>>& runs = frame->runs;
  if (!runs.empty() && runs.back().data() + runs.back().size() == bytes.data()) {
    runs.back() = {runs.back().data(), runs.back().size() + bytes.size()};
  } else {
    runs.push_back(bytes);
  }
}

uint64_t FramePacker::uncut_bytes_left() const {
  const size_t segments = selection_->segment_count();
  for (size_t i = 0; i < segments; ++i) {
    if (selection_->At(i).bytes > kFramePayloadBytesMax) return 0;
  }
  return uint64_t{(item_count() - item_) / segments} * selection_->bytes();
}

absl::StatusOr<FramePacker::Frame> FramePacker::Next(absl::Span<uint8_t> buffer) {
  CAIRN_CHECK(!done());
  CAIRN_CHECK(payload_ == Payload::kNamed || buffer.size() >= kFramePayloadBytesMax);
  Frame frame;
  digests_in_frame_ = 0;
  while (!done()) {
    const uint64_t segment_bytes = selection_->At(item_ % selection_->segment_count()).bytes;
    const bool cut = segment_bytes > kFramePayloadBytesMax;
    if (!Fits(frame, cut ? 1 : segment_bytes)) break;
    const absl::StatusOr<absl::Span<const uint8_t>> bytes = Bytes(item_);
    if (!bytes.ok()) return bytes.status();
    if (offset_ == 0) {
      const BlockKey& key = blocks_[item_ / selection_->segment_count()].key;
      const SegmentId& id = selection_->At(item_ % selection_->segment_count()).id;
      digests_.push_back(SegmentDigest(key, id, *bytes));
    }
    if (cut) {
      AddRange(*bytes, buffer, &frame);
    } else {
      AddWhole(*bytes, buffer, &frame);
    }
  }
  CAIRN_CHECK(frame.payload_bytes > 0);
  return frame;
}

}  // namespace cairn
