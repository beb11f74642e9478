// SegmentSelection: which segments of each block a call moves.
//
// Made once from the parts that a caller names, checked against the layout. Selected segments have
// indexes 0.. in the order of the parts. Immutable, so thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/identity/payload_map.h"

namespace cairn {

// Consecutive layers of one part.
struct PartLayers {
  uint32_t group = 0;
  uint32_t slice = 0;
  uint32_t first_layer = 0;
  uint32_t layers = 0;  // 0: all from first_layer.

  friend bool operator==(const PartLayers&, const PartLayers&) = default;
};

// The parts without which a block is not present.
std::vector<PartLayers> RequiredParts(const PayloadMap& map);

class SegmentSelection {
 public:
  // No parts at all selects every part of the layout. INVALID_ARGUMENT, naming the part, for one
  // that the layout does not have, for layers past its end, and for a segment named twice.
  static absl::StatusOr<SegmentSelection> Make(const PayloadMap& map,
                                               absl::Span<const PartLayers> parts);

  // As asked for, with `layers` never 0. Empty parts of the call are listed one by one.
  const std::vector<PartLayers>& parts() const { return parts_; }
  size_t segment_count() const { return segments_.size(); }
  // Of one block.
  uint64_t bytes() const { return bytes_; }

  struct Segment {
    SegmentId id;
    uint64_t bytes = 0;
  };
  // REQUIRES: index < segment_count().
  const Segment& At(size_t index) const;

  // Index of a segment named from outside; nothing when it is not selected.
  std::optional<size_t> Find(const SegmentId& id) const;

 private:
  explicit SegmentSelection(const PayloadMap& map);
  absl::Status Add(const PartLayers& part);

  PayloadMap map_;
  std::vector<PartLayers> parts_;
  std::vector<Segment> segments_;
  // By index in map_: index here, or -1.
  std::vector<int32_t> index_of_segment_;
  uint64_t bytes_ = 0;
};

}  // namespace cairn
