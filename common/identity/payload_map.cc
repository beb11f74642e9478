#include "common/identity/payload_map.h"

#include <algorithm>

#include "common/base/check.h"

namespace cairn {

absl::StatusOr<PayloadMap> PayloadMap::Make(const Layout& layout) {
  absl::Status status = ValidateLayout(layout);
  if (!status.ok()) return status;
  return PayloadMap(layout);
}

PayloadMap::PayloadMap(const Layout& layout) : layout_(layout) {
  for (uint32_t g = 0; g < layout_.groups.size(); ++g) {
    const Group& group = layout_.groups[g];
    first_part_of_group_.push_back(parts_.size());
    tiles_of_group_.push_back(TilesOf(layout_, group));
    for (uint32_t slice = 0; slice < SlicesOf(layout_, group); ++slice) {
      const Part part{.group = g,
                      .slice = slice,
                      .layers = group.layers,
                      .required = group.required == 1,
                      .first_segment = segment_count_,
                      .offset = block_bytes_,
                      .segment_bytes = tiles_of_group_.back().segment_bytes,
                      .bytes = PartBytes(layout_, group)};
      block_bytes_ += part.bytes;
      segment_count_ += part.layers;
      required_part_count_ += part.required ? 1 : 0;
      required_segment_count_ += part.required ? part.layers : 0;
      parts_.push_back(part);
    }
  }
  CAIRN_CHECK(block_bytes_ == BlockBytes(layout_));
  CAIRN_CHECK(block_bytes_ > 0 && block_bytes_ <= kBlockBytesMax);
  CAIRN_CHECK(block_bytes_ % kTileAlignBytes == 0);
  CAIRN_CHECK(segment_count_ <= kBlockSegmentsMax);
}

std::optional<size_t> PayloadMap::FindPart(uint32_t group, uint32_t slice) const {
  if (group >= layout_.groups.size()) return std::nullopt;
  if (slice >= SlicesOf(layout_, layout_.groups[group])) return std::nullopt;
  return first_part_of_group_[group] + slice;
}

std::optional<size_t> PayloadMap::FindSegment(const SegmentId& id) const {
  const std::optional<size_t> part = FindPart(id.group, id.slice);
  if (!part.has_value() || id.layer >= parts_[*part].layers) return std::nullopt;
  return parts_[*part].first_segment + id.layer;
}

size_t PayloadMap::PartOfSegment(size_t index) const {
  CAIRN_CHECK(index < segment_count_);
  const auto after =
      std::upper_bound(parts_.begin(), parts_.end(), index,
                       [](size_t i, const Part& part) { return i < part.first_segment; });
  CAIRN_CHECK(after != parts_.begin());
  return static_cast<size_t>(after - parts_.begin()) - 1;
}

SegmentId PayloadMap::SegmentAt(size_t index) const {
  const Part& part = parts_[PartOfSegment(index)];
  return {part.group, part.slice, static_cast<uint32_t>(index - part.first_segment)};
}

uint64_t PayloadMap::SegmentOffset(size_t index) const {
  const Part& part = parts_[PartOfSegment(index)];
  return part.offset + (index - part.first_segment) * part.segment_bytes;
}

uint64_t PayloadMap::SegmentBytesAt(size_t index) const {
  return parts_[PartOfSegment(index)].segment_bytes;
}

const SegmentTiles& PayloadMap::TilesOfGroup(uint32_t group) const {
  CAIRN_CHECK(group < tiles_of_group_.size());
  return tiles_of_group_[group];
}

}  // namespace cairn
