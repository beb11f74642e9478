// Where payload lies in the caller's memory, segment by segment.
//
// An engine keeps KV in pages of its own, so there is no single buffer: a call asks for each
// segment's place. The functions are called on the calling thread, during the call, more than once
// for a segment. A place stays the same throughout the call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "common/identity/payload_map.h"

namespace cairn {

// Memory for one segment of the block with this index in the call: exactly its size.
using SegmentPlace = absl::FunctionRef<absl::Span<uint8_t>(size_t block, const SegmentId& id)>;

// Bytes of one segment of the block with this index in the reservation: exactly its size, the same
// each time. They are copied before the function is called again, and not looked at after that.
using SegmentSource =
    absl::FunctionRef<absl::Span<const uint8_t>(size_t block, const SegmentId& id)>;

// Blocks one after the other in slot order (PayloadMap), in one buffer. Usable as a SegmentPlace
// and as a SegmentSource; borrows both arguments.
class ContiguousBlocks {
 public:
  ContiguousBlocks(const PayloadMap* map, absl::Span<uint8_t> bytes) : map_(map), bytes_(bytes) {}

  // Empty (and so refused by the call) when the segment lies past the buffer's end.
  absl::Span<uint8_t> operator()(size_t block, const SegmentId& id) const {
    const auto segment = map_->FindSegment(id);
    if (!segment || block >= bytes_.size() / map_->block_bytes()) return {};
    return bytes_.subspan(block * map_->block_bytes() + map_->SegmentOffset(*segment),
                          map_->SegmentBytesAt(*segment));
  }

 private:
  const PayloadMap* map_;
  absl::Span<uint8_t> bytes_;
};

}  // namespace cairn
