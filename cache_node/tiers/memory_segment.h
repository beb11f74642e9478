// MemorySegment: one sealed memfd, mapped writable by this process.
//
// Owns the descriptor and the mapping. The descriptor can be passed to readers: it is sealed
// against shrinking, growing, further writable mappings and further seals. Fresh memory is zero,
// and all of it is there: a write into it never finds the machine out of memory. Thread-safe as
// plain memory is.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace cairn::node {

class MemorySegment {
 public:
  // Creates, maps, touches and seals. INVALID_ARGUMENT when `bytes` is not a positive multiple of
  // the page size; RESOURCE_EXHAUSTED when the kernel refuses memory or descriptors;
  // FAILED_PRECONDITION when it is too old for the seals. It does not look at the cgroup's limit,
  // beyond which the kernel may kill rather than refuse: who configures the pool checks that
  // before.
  static absl::StatusOr<std::unique_ptr<MemorySegment>> Make(uint64_t bytes);
  static uint64_t PageBytes();
  ~MemorySegment();

  MemorySegment(const MemorySegment&) = delete;
  MemorySegment& operator=(const MemorySegment&) = delete;

  int fd() const { return fd_; }
  absl::Span<uint8_t> bytes() const { return bytes_; }

 private:
  explicit MemorySegment(int fd) : fd_(fd) {}

  const int fd_;
  absl::Span<uint8_t> bytes_;
};

}  // namespace cairn::node
