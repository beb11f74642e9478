// MemorySegment: one sealed memfd, mapped writable by this process.
//
// Owns the descriptor and the mapping. The descriptor can be passed to readers: it is sealed against
// shrinking, growing, further writable mappings and further seals.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace cairn::node {

class MemorySegment {
 public:
  // Creates, maps, touches and seals. `bytes` is a multiple of the page size. RESOURCE_EXHAUSTED when
  // the kernel refuses memory or descriptors.
  static absl::StatusOr<std::unique_ptr<MemorySegment>> Make(uint64_t bytes);
  ~MemorySegment();

  MemorySegment(const MemorySegment&) = delete;
  MemorySegment& operator=(const MemorySegment&) = delete;

  int fd() const { return fd_; }
  absl::Span<uint8_t> bytes() const { return bytes_; }

 private:
  MemorySegment(int fd, absl::Span<uint8_t> bytes) : fd_(fd), bytes_(bytes) {}

  const int fd_;
  const absl::Span<uint8_t> bytes_;
};

}  // namespace cairn::node
