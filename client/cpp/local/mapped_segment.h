// MappedSegment: one memory segment of a node, and its page of generations, mapped for reading.
//
// Owns both mappings. Thread-safe. The bytes are written by the node at any time: a slot's are
// those of the block that was asked for as long as its generation is the one that was answered,
// looked at after the bytes were used.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/local/descriptor.h"

namespace cairn {

class MappedSegment {
 public:
  struct Shape {
    uint64_t bytes = 0;
    uint64_t slot_bytes = 0;
    uint32_t slots = 0;
  };
  // Everything comes from outside and is checked: INTERNAL when it does not fit together.
  // RESOURCE_EXHAUSTED when the kernel does not map it.
  static absl::StatusOr<std::shared_ptr<const MappedSegment>> Map(const Shape& shape,
                                                                  const Descriptor& memory,
                                                                  const Descriptor& generations);
  ~MappedSegment();

  MappedSegment(const MappedSegment&) = delete;
  MappedSegment& operator=(const MappedSegment&) = delete;

  uint64_t slot_bytes() const { return shape_.slot_bytes; }
  bool HasSlot(uint32_t slot) const { return slot < shape_.slots; }
  // REQUIRES of both: HasSlot.
  absl::Span<const uint8_t> Slot(uint32_t slot) const;
  // What was read of the slot before is older than the answer.
  uint64_t Generation(uint32_t slot) const;

 private:
  explicit MappedSegment(const Shape& shape) : shape_(shape) {}

  const Shape shape_;
  absl::Span<const uint8_t> memory_;
  absl::Span<const uint8_t> generations_;
};

}  // namespace cairn
