// WriteStream: sends the frames of one write and takes the answers.
//
// Over one Write call, or over two for large writes, which take frames in turns: of one alone, the
// next frame's payload waits until the node has seen its head, which it does not while it lands the
// frame before. A bounded number of a call's frames is on its way unanswered, so that the node's
// admission is what paces the writer. Every answer is read; nothing more is sent once one failed.
//
// Not thread-safe; Run blocks its caller up to the timeout. Two kinds of failure: the stream's own
// is Run's status (the node's code, DEADLINE_EXCEEDED, or INTERNAL for an answer that breaks the
// contract), after which items from items_answered() on may have landed or not; a segment's own is
// in errors() and ends nothing. It does not repeat: who owns the token knows what is still missing.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cairn/v1/write.pb.h"
#include "client/cpp/borrowed_bytes.h"
#include "client/cpp/call_queue.h"
#include "client/cpp/frame_buffers.h"
#include "client/cpp/frame_packer.h"
#include "client/cpp/node_link.h"
#include "client/cpp/raw_call.h"
#include "common/base/bytes16.h"

namespace cairn {

// Segments that did not land: consecutive layers of one part of one block.
struct SegmentError {
  size_t block = 0;  // Index in the reservation.
  SegmentId first;
  uint32_t layers = 1;
  absl::Status status;
};

// What the node said of a piece; never OK.
absl::Status StatusOfPieceError(const v1::PieceError& error);

// Frames of one call that wait for their answer.
inline constexpr size_t kFramesInFlightMax = 4;
// Errors kept of one write; more are counted.
inline constexpr size_t kSegmentErrorsMax = 256;

class WriteStream {
 public:
  // Borrows the packer.
  WriteStream(NodeLink* link, const TokenId& token, absl::Duration timeout, FramePacker* packer);

  // Sends what the packer has and waits for the end. OK: each item was answered; see errors(). To
  // be called once.
  absl::Status Run();

  // Items of the packer that were answered, counted from its first one, without a gap.
  size_t items_answered() const { return items_answered_; }
  // Whether an answered item did not land.
  bool Refused(size_t item) const { return refused_[item]; }
  // The same with the reasons; at most kSegmentErrorsMax are listed.
  const std::vector<SegmentError>& errors() const { return errors_; }
  size_t errors_total() const { return errors_total_; }

 private:
  // What is remembered of a frame until its answer.
  struct Sent {
    std::vector<PieceHeader> pieces;
    std::vector<size_t> first_items;  // By piece.
    size_t items_after = 0;
    bool answered = false;
  };

  // One call.
  struct Lane {
    Lane(CallQueue* queue, NodeLink* link, absl::Duration timeout);

    // Whether it may be given the next frame, or told that none follows.
    bool Ready(bool nothing_left) const {
      return !broken && !writing && !closed &&
             (nothing_left || unanswered.size() < kFramesInFlightMax);
    }

    RawCall call;
    std::deque<uint64_t> unanswered;  // Numbers of frames.
    bool writing = false;
    bool closed = false;  // The last frame, or that none follows, was sent.
    bool broken = false;  // A write failed: only the end is waited for.
    bool over = false;
  };

  absl::Status SendNext(Lane* lane);
  absl::Status TakeAnswer(Lane* lane);
  absl::Status AddErrors(const Sent& sent, const v1::WriteResponse& response);
  // Handles what has ended of the lane.
  void Continue(Lane* lane);
  void Fail(absl::Status status);

  FramePacker* packer_;
  const TokenId token_;
  // Both shared with slices that outlive the call.
  std::shared_ptr<FrameBuffers> buffers_;
  std::shared_ptr<BorrowedBytes> borrowed_;
  CallQueue queue_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::deque<Sent> sent_;    // From the first one without an answer on.
  uint64_t first_sent_ = 0;  // Its number.
  absl::Status failure_;
  size_t items_answered_;
  std::vector<bool> refused_;  // By item.
  std::vector<SegmentError> errors_;
  size_t errors_total_ = 0;
};

}  // namespace cairn
