// MemoryPinner: who wants to know where host memory lies, to copy from and to it without the
// processor: a device.
//
// Memory that cannot be pinned still is good memory: the pinner keeps that to itself. Thread-safe.
#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace cairn::node {

class MemoryPinner {
 public:
  virtual ~MemoryPinner() = default;
  // Whole pages, mapped until Unpin. May take long: not under a lock.
  virtual void Pin(absl::Span<uint8_t> memory) = 0;
  virtual void Unpin(absl::Span<uint8_t> memory) = 0;
};

}  // namespace cairn::node
