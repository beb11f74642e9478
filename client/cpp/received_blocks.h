// ReceivedBlocks: puts the frames of a Get into the caller's buffers and decides what is good.
//
// Everything in a frame came from outside and is checked before a byte is written: which segment a
// piece is, that it was asked for, that its range follows what arrived before, that the segment is
// not finished yet. A segment is hashed on its way or, when it is short or came in parts, where it
// lies, against the key asked for, and not written again by the same attempt. Knows no gRPC call;
// several attempts may feed it one after the other. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "client/cpp/get_result.h"
#include "client/cpp/segment_buffers.h"
#include "client/cpp/segment_selection.h"
#include "common/base/bytes16.h"
#include "common/wire/frame.h"
#include "common/wire/slice_cursor.h"

namespace cairn {

// Segments of one Get, over all its blocks.
inline constexpr size_t kSegmentsPerGetMax = size_t{1} << 22;

class ReceivedBlocks {
 public:
  // Borrows all three; they outlive it.
  ReceivedBlocks(const SegmentSelection* selection, absl::Span<const BlockKey> keys,
                 SegmentPlace place);

  // INVALID_ARGUMENT when a place has another size than its segment, or the call is too large.
  absl::Status CheckPlaces() const;

  // Blocks that a new attempt asks for, in order: neither whole, nor missing, nor mismatched. What
  // arrived of unfinished segments is forgotten; pieces name blocks by index in this answer.
  std::vector<size_t> BeginAttempt();

  // Every segment of the block is in its place, and was checked. Before any attempt.
  void TakeWhole(size_t block);

  // An attempt may be several calls at once: call `index` of `count` asks for every count-th block
  // of BeginAttempt's answer, from the index-th on, and its pieces name blocks within those.
  struct Share {
    size_t index = 0;
    size_t count = 1;
  };

  // Takes a frame of one call of the attempt. INTERNAL, naming the piece, when the node broke the
  // contract: nothing of that piece, or after it, was written, and the call is to be cut.
  absl::Status Accept(const FrameHeader& header, SliceCursor payload, Share share);
  absl::Status Accept(const FrameHeader& header, SliceCursor payload) {
    return Accept(header, payload, {0, 1});
  }

  // Zeroes what is not good and gives the result. `status` is how the call ended; an OK call that
  // left a segment unanswered becomes INTERNAL. To be called once, last.
  GetResult Finish(absl::Status status);

 private:
  // By segment: bytes received so far, or one of these.
  static constexpr uint32_t kGood = UINT32_MAX;
  static constexpr uint32_t kBad = UINT32_MAX - 1;
  static constexpr uint32_t kMissing = UINT32_MAX - 2;

  struct Target {
    size_t block = 0;
    size_t first = 0;     // Index in the selection; consecutive ones follow.
    uint32_t count = 0;   // Segments; 1 for a range of one.
    uint32_t offset = 0;  // Within the first.
    uint32_t bytes = 0;   // In each.
  };

  absl::Status AcceptMissing(size_t block, const PieceHeader& piece);
  // Which segments a piece with payload fills, when the contract allows it.
  absl::StatusOr<Target> TargetOf(size_t block, const PieceHeader& piece) const;
  absl::StatusOr<Target> RangeTarget(const PieceHeader& piece, size_t block, size_t segment) const;
  absl::Status CheckNext(const Target& target, const PieceHeader& piece) const;
  void Land(const Target& target, const PieceHeader& piece, SliceCursor* payload);
  // A whole segment, in one pass.
  uint64_t CopyAndHash(size_t block, const SegmentId& id, absl::Span<uint8_t> place,
                       SliceCursor* payload) const;
  void FinishSegment(size_t block, size_t segment, uint64_t digest);
  void Judge(size_t block, size_t segment, bool good);
  FetchedBlock OutcomeOf(size_t block) const;

  uint32_t& Received(size_t block, size_t segment) {
    return received_[block * selection_->segment_count() + segment];
  }
  uint32_t Received(size_t block, size_t segment) const {
    return received_[block * selection_->segment_count() + segment];
  }

  const SegmentSelection* selection_;
  absl::Span<const BlockKey> keys_;
  SegmentPlace place_;
  std::vector<uint32_t> received_;
  // Digest that the first piece of an unfinished segment gave, by index in received_.
  absl::flat_hash_map<size_t, uint64_t> digest_of_unfinished_;
  // By block: the state that the node gave for what it does not send, or 0.
  std::vector<int32_t> states_;
  // By block: how many pieces of this attempt said that something is missing.
  std::vector<uint32_t> missing_pieces_;
  // Blocks of the attempt, in order.
  std::vector<size_t> attempt_blocks_;
  std::vector<MismatchedSegment> mismatches_;
  uint64_t mismatches_total_ = 0;
};

}  // namespace cairn
