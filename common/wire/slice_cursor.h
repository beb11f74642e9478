// SliceCursor: a place in bytes that lie scattered over gRPC slices.
//
// A received message of 1 MiB is some twenty slices, cut anywhere. A cursor walks over them up to
// an end, never past it, and hands out spans or copies. Copying a cursor is cheap and gives a
// second, independent place. It borrows the slices: their array must stay where it is. Not
// thread-safe.
#pragma once

#include <grpcpp/support/slice.h>

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace cairn {

class SliceCursor {
 public:
  SliceCursor() = default;
  // At the first byte of `slices`, ending at their last.
  explicit SliceCursor(absl::Span<const grpc::Slice> slices);

  // Bytes between here and the end.
  size_t remaining() const { return remaining_; }

  // Moves the end to `size` bytes from here. REQUIRES: size <= remaining().
  void Truncate(size_t size);

  // Passes over the longest contiguous run of at most `size_max` bytes from here and returns it;
  // empty only at the end or when `size_max` is 0.
  absl::Span<const uint8_t> Next(size_t size_max);

  // Passes over `size` bytes. REQUIRES: size <= remaining().
  void Skip(size_t size);

  // Passes over `size` bytes and copies them to `out`. REQUIRES: size <= remaining().
  void Copy(uint8_t* out, size_t size);

 private:
  absl::Span<const grpc::Slice> slices_;
  // Invariant: while remaining_ > 0, slices_ and offset_ reach over at least that many bytes.
  size_t offset_ = 0;
  size_t remaining_ = 0;
};

}  // namespace cairn
