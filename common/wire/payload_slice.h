// Payload bytes on their way into a gRPC message: borrowed from memory that outlives the send, or
// copied.
#pragma once

#include <grpcpp/support/slice.h>

#include <cstdint>
#include <memory>

#include "absl/types/span.h"

namespace cairn {

// What keeps borrowed payload bytes in place: a pin, a lease, a buffer. Its destructor is the end
// of the borrow. gRPC runs it once, on a thread of its own, when the bytes are in the socket or the
// call is gone; that may be after the call's OnDone. It must not block, and must not take a lock
// that anyone holds around StartWrite or Finish.
class PayloadOwner {
 public:
  virtual ~PayloadOwner() = default;
};

// A slice over `bytes` themselves, which must neither move nor change while `owner` lives. `owner`
// may be null for memory that is never freed. With empty `bytes` the owner is destroyed before it
// returns.
grpc::Slice BorrowSlice(absl::Span<const uint8_t> bytes, std::unique_ptr<PayloadOwner> owner);

// A slice over a copy of `bytes`.
grpc::Slice CopySlice(absl::Span<const uint8_t> bytes);

}  // namespace cairn
