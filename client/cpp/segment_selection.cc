#include "client/cpp/segment_selection.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn {
namespace {

constexpr int32_t kNotSelected = -1;

absl::Status BadPart(const PartLayers& part, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("part (group ", part.group, ", slice ", part.slice,
                                                 ", layers ", part.first_layer, " and ",
                                                 part.layers, " on): ", why));
}

}  // namespace

std::vector<PartLayers> RequiredParts(const PayloadMap& map) {
  std::vector<PartLayers> parts;
  for (const PayloadMap::Part& part : map.parts()) {
    if (part.required) parts.push_back({.group = part.group, .slice = part.slice});
  }
  return parts;
}

SegmentSelection::SegmentSelection(const PayloadMap& map)
    : map_(map), index_of_segment_(map.segment_count(), kNotSelected) {}

absl::StatusOr<SegmentSelection> SegmentSelection::Make(const PayloadMap& map,
                                                        absl::Span<const PartLayers> parts) {
  SegmentSelection selection(map);
  if (parts.empty()) {
    for (const PayloadMap::Part& part : map.parts()) {
      CAIRN_CHECK_OK(selection.Add({.group = part.group, .slice = part.slice}));
    }
    return selection;
  }
  for (const PartLayers& part : parts) {
    if (absl::Status status = selection.Add(part); !status.ok()) return status;
  }
  return selection;
}

absl::Status SegmentSelection::Add(const PartLayers& asked) {
  const std::optional<size_t> index = map_.FindPart(asked.group, asked.slice);
  if (!index) return BadPart(asked, "the layout has no such part");
  const PayloadMap::Part& part = map_.parts()[*index];
  if (asked.first_layer >= part.layers || asked.layers > part.layers - asked.first_layer) {
    return BadPart(asked, absl::StrCat("the group has ", part.layers, " layers"));
  }
  PartLayers resolved = asked;
  if (resolved.layers == 0) resolved.layers = part.layers - asked.first_layer;
  for (uint32_t i = 0; i < resolved.layers; ++i) {
    const uint32_t layer = resolved.first_layer + i;
    int32_t& place = index_of_segment_[part.first_segment + layer];
    if (place != kNotSelected) return BadPart(asked, absl::StrCat("layer ", layer, " twice"));
    place = static_cast<int32_t>(segments_.size());
    segments_.push_back({{part.group, part.slice, layer}, part.segment_bytes});
    bytes_ += part.segment_bytes;
  }
  parts_.push_back(resolved);
  return absl::OkStatus();
}

const SegmentSelection::Segment& SegmentSelection::At(size_t index) const {
  CAIRN_CHECK(index < segments_.size());
  return segments_[index];
}

std::optional<size_t> SegmentSelection::Find(const SegmentId& id) const {
  const std::optional<size_t> segment = map_.FindSegment(id);
  if (!segment || index_of_segment_[*segment] == kNotSelected) return std::nullopt;
  return static_cast<size_t>(index_of_segment_[*segment]);
}

}  // namespace cairn
