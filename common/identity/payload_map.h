// PayloadMap: where each part and segment of a block lies in the block's slot.
//
// Computed once from a layout; immutable, so thread-safe. Parts lie in order of (group, slice)
// without gaps, the segments of a part in order of layer, all on multiples of 64 bytes. Segments
// are also numbered 0.. in that same order. Lookups by (group, slice, layer) take numbers from
// outside and answer nothing when there is no such thing; lookups by index are for our own indexes
// and CHECK.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/identity/layout.h"
#include "common/identity/payload_size.h"

namespace cairn {

// Names one segment of a block.
struct SegmentId {
  uint32_t group = 0;
  uint32_t slice = 0;
  uint32_t layer = 0;

  friend bool operator==(const SegmentId&, const SegmentId&) = default;
};

class PayloadMap {
 public:
  struct Part {
    uint32_t group = 0;
    uint32_t slice = 0;
    uint32_t layers = 0;
    bool required = false;
    size_t first_segment = 0;    // Index of layer 0; the others follow.
    uint64_t offset = 0;         // Within the block's slot.
    uint64_t segment_bytes = 0;  // Each of its segments.
    uint64_t bytes = 0;
  };

  // As ValidateLayout when the layout is not valid.
  static absl::StatusOr<PayloadMap> Make(const Layout& layout);

  const Layout& layout() const { return layout_; }
  uint64_t block_bytes() const { return block_bytes_; }
  size_t segment_count() const { return segment_count_; }
  // In slot order.
  const std::vector<Part>& parts() const { return parts_; }
  size_t required_part_count() const { return required_part_count_; }
  size_t required_segment_count() const { return required_segment_count_; }

  // Index into parts().
  std::optional<size_t> FindPart(uint32_t group, uint32_t slice) const;
  std::optional<size_t> FindSegment(const SegmentId& id) const;

  // REQUIRES of these: index < segment_count().
  SegmentId SegmentAt(size_t index) const;
  size_t PartOfSegment(size_t index) const;
  uint64_t SegmentOffset(size_t index) const;  // Within the block's slot.
  uint64_t SegmentBytesAt(size_t index) const;

  // Where the tiles lie within any segment of `group`. REQUIRES: group < layout().groups.size().
  const SegmentTiles& TilesOfGroup(uint32_t group) const;

 private:
  explicit PayloadMap(const Layout& layout);

  Layout layout_;
  std::vector<Part> parts_;
  std::vector<size_t> first_part_of_group_;
  std::vector<SegmentTiles> tiles_of_group_;
  uint64_t block_bytes_ = 0;
  size_t segment_count_ = 0;
  size_t required_part_count_ = 0;
  size_t required_segment_count_ = 0;
};

}  // namespace cairn
