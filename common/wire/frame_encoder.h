// Encodes a frame as a gRPC message without touching its payload bytes.
//
// The message is one small slice (fields, then the payload's tag and length) followed by the
// caller's slices, and a generated WriteRequest or GetResponse parses it. Thread-safe: no state.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include "absl/types/span.h"
#include "common/wire/frame.h"

namespace cairn {

// Bytes that `header` takes in a message, everything but the payload itself. The encoder refuses
// more than kFrameHeaderBytesMax: who fills a frame piece by piece asks here (or bounds its
// digests).
size_t FrameHeaderBytes(FrameKind kind, const FrameHeader& header);

// The message. Its bytes live as long as the returned buffer or a copy of it that gRPC took.
// REQUIRES: the sum of the pieces' lengths is the sum of the slices' sizes; the bounds of
// common/wire/limits.h hold; only a kWriteRequest has a token.
grpc::ByteBuffer EncodeFrame(FrameKind kind, const FrameHeader& header,
                             absl::Span<const grpc::Slice> payload);

}  // namespace cairn
