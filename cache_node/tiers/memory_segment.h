// MemorySegment: one sealed memfd, mapped writable by this process.
//
// Owns the descriptor and the mapping. The descriptor can be passed to others: it is sealed against
// shrinking, growing and further seals, and, but for staging memory, against further writable
// mappings. Fresh memory is zero, and all of it is there: a write into it never finds the machine
// out of memory. Thread-safe as plain memory is; what others may write is never to be trusted.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cache_node/tiers/memory_pinner.h"

namespace cairn::node {

class MemorySegment {
 public:
  // Who can map it writable.
  enum class Writers { kOwner, kAnyHolder };

  // Creates, maps, touches and seals. INVALID_ARGUMENT when `bytes` is not a positive multiple of
  // the page size; RESOURCE_EXHAUSTED when the kernel refuses memory or descriptors;
  // FAILED_PRECONDITION when it is too old for the seals. It does not look at the cgroup's limit,
  // beyond which the kernel may kill rather than refuse: who configures the pool checks that
  // before.
  static absl::StatusOr<std::unique_ptr<MemorySegment>> Make(uint64_t bytes,
                                                             Writers writers = Writers::kOwner);
  static uint64_t PageBytes();
  ~MemorySegment();

  MemorySegment(const MemorySegment&) = delete;
  MemorySegment& operator=(const MemorySegment&) = delete;

  // Open for writing as well; the seals are what keeps others from that.
  int fd() const { return fd_; }
  // A descriptor of its own that is open for reading only; the caller closes it. -1 when the kernel
  // refuses (no descriptors left, no /proc).
  int OpenForReading() const;
  // Gives all pages back to the machine, though others map them: they find zeros from then on.
  // REQUIRES: others may write it.
  void FreePages() const;
  absl::Span<uint8_t> bytes() const { return bytes_; }
  // Pins it until it is destroyed, once. The pinner outlives it.
  void PinBy(MemoryPinner* pinner);

 private:
  explicit MemorySegment(int fd) : fd_(fd) {}

  const int fd_;
  absl::Span<uint8_t> bytes_;
  MemoryPinner* pinner_ = nullptr;
};

}  // namespace cairn::node
