// Decodes received frames, leaving the payload where gRPC put it.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <vector>

#include "absl/status/statusor.h"
#include "common/wire/frame.h"
#include "common/wire/slice_cursor.h"

namespace cairn {

// A received frame. Owns the message's slices, so that the payload's bytes live as long as it does.
// Move-only. Thread-compatible.
class ReceivedFrame {
 public:
  ReceivedFrame(ReceivedFrame&&) = default;
  ReceivedFrame& operator=(ReceivedFrame&&) = default;

  const FrameHeader& header() const { return header_; }

  // At the payload's first byte, ending at its last: exactly the sum of the pieces' lengths. Valid
  // while the frame lives, also after it moved.
  SliceCursor payload() const { return payload_; }

 private:
  friend absl::StatusOr<ReceivedFrame> DecodeFrame(FrameKind kind, const grpc::ByteBuffer& message);
  ReceivedFrame() = default;

  std::vector<grpc::Slice> slices_;
  FrameHeader header_;
  SliceCursor payload_;
};

// The frame that `message` holds. Fields may come in any order; unknown ones are skipped; of a
// scalar given twice the last counts, as in any Protobuf parser. INVALID_ARGUMENT, naming the
// place, for anything that such a parser refuses, and also for: groups, a known field of another
// wire type, two payloads, a token of a length other than 0 and 16, lengths that do not add up to
// the payload, and what exceeds common/wire/limits.h. Cost is linear in the header, and in the
// number of slices of the payload. Whether the pieces make sense is for the caller to check.
absl::StatusOr<ReceivedFrame> DecodeFrame(FrameKind kind, const grpc::ByteBuffer& message);

}  // namespace cairn
