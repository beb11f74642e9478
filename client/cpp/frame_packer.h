// FramePacker: cuts the segments of a write into frames, in order.
//
// A frame takes whole segments while they fit; only a segment larger than a frame is cut. Bytes are
// copied out of the caller's memory, which is free again as soon as the write returns: gRPC may
// hold what it was given longer than the call lasts, so it is given copies. Where the caller says
// that its memory stays readable, they are named where they lie instead. Digests are computed from
// that same pass. Knows no gRPC call. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "client/cpp/segment_buffers.h"
#include "client/cpp/segment_selection.h"
#include "common/base/bytes16.h"
#include "common/wire/frame.h"

namespace cairn {

class FramePacker {
 public:
  // A block of the reservation, to be written with every segment of the selection.
  struct Block {
    uint32_t index = 0;  // In the reservation.
    BlockKey key;
  };

  enum class Payload { kCopied, kNamed };

  // Borrows all; they outlive it. Packs from item `first_item` on, where item i is segment
  // i % segment_count of block i / segment_count.
  FramePacker(const SegmentSelection* selection, absl::Span<const Block> blocks,
              SegmentSource source, size_t first_item, Payload payload = Payload::kCopied);

  size_t item_count() const { return blocks_.size() * selection_->segment_count(); }
  // Items that are complete in a frame, from item 0 on.
  size_t items_packed() const { return item_; }
  // Everything is packed.
  bool done() const { return item_ == item_count(); }

  // Bytes of the items that are left; 0 where one is larger than a frame and will be cut.
  uint64_t uncut_bytes_left() const;

  struct Frame {
    // Without a token.
    FrameHeader header;
    // By piece: the first item that it covers; the following layers are the following items.
    std::vector<size_t> first_items;
    // Where the payload lies, in order: one run in the buffer, or runs of the source's memory.
    std::vector<absl::Span<const uint8_t>> runs;
    // Bytes in them.
    size_t payload_bytes = 0;
  };

  // The next frame. kCopied: its payload is in `buffer`, which holds kFramePayloadBytesMax; kNamed
  // needs none. INVALID_ARGUMENT when the source gives another size than the segment has. REQUIRES:
  // not done().
  absl::StatusOr<Frame> Next(absl::Span<uint8_t> buffer);
  Payload payload() const { return payload_; }

  // Digest of a packed item. REQUIRES: it is at or after first_item and complete in a frame.
  uint64_t DigestOf(size_t item) const;

 private:
  absl::StatusOr<absl::Span<const uint8_t>> Bytes(size_t item) const;
  bool Fits(const Frame& frame, uint64_t bytes) const;
  void AddWhole(absl::Span<const uint8_t> bytes, absl::Span<uint8_t> buffer, Frame* frame);
  void AddRange(absl::Span<const uint8_t> bytes, absl::Span<uint8_t> buffer, Frame* frame);
  void AddBytes(absl::Span<const uint8_t> bytes, absl::Span<uint8_t> buffer, Frame* frame);
  PieceHeader PieceOf(size_t item) const;

  const SegmentSelection* selection_;
  absl::Span<const Block> blocks_;
  SegmentSource source_;
  const Payload payload_;
  const size_t first_item_;
  size_t item_;
  uint32_t offset_ = 0;  // Within the item, when it is larger than a frame.
  size_t digests_in_frame_ = 0;
  std::vector<uint64_t> digests_;
};

}  // namespace cairn
