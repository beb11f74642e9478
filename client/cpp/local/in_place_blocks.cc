#include "client/cpp/local/in_place_blocks.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/identity/segment_digest.h"

namespace cairn {

InPlaceBlocks::InPlaceBlocks(const NamespaceHandle& name_space, absl::Span<const BlockKey> keys,
                             HeldPlaces places)
    : name_space_(name_space), keys_(keys.begin(), keys.end()), held_(std::move(places)) {
  CAIRN_CHECK(held_.places().size() == keys_.size());
  const PayloadMap& map = name_space_.payload_map();
  uint64_t there = 0;
  for (const LocalLink::Place& place : held_.places()) {
    absl::Span<const uint8_t>& slot = slots_.emplace_back();
    // From outside: a place that does not fit is none.
    const bool fits = place.segment != nullptr &&
                      place.segment->slot_bytes() >= map.block_bytes() &&
                      place.digests.size() == map.segment_count();
    if (!fits) continue;
    slot = place.segment->Slot(place.slot).first(map.block_bytes());
    if (there_prefix_ + 1 == slots_.size()) ++there_prefix_;
    ++there;
  }
  held_.link()->CountInPlace(there);
}

absl::Span<const uint8_t> InPlaceBlocks::segment(size_t block, const SegmentId& id) const {
  const PayloadMap& map = name_space_.payload_map();
  const std::optional<size_t> segment = map.FindSegment(id);
  if (slots_[block].empty() || !segment.has_value()) return {};
  const std::vector<uint32_t>& absent = held_.places()[block].absent;
  if (std::find(absent.begin(), absent.end(), *segment) != absent.end()) return {};
  return slots_[block].subspan(map.SegmentOffset(*segment), map.SegmentBytesAt(*segment));
}

bool InPlaceBlocks::Unchanged(size_t block) const {
  if (slots_[block].empty()) return false;
  const LocalLink::Place& place = held_.places()[block];
  if (place.segment->Generation(place.slot) == place.generation) return true;
  held_.link()->CountChanged();
  return false;
}

bool InPlaceBlocks::Verify(size_t block, const SegmentSelection& selection) const {
  const PayloadMap& map = name_space_.payload_map();
  for (size_t i = 0; i < selection.segment_count(); ++i) {
    const SegmentId& id = selection.At(i).id;
    const absl::Span<const uint8_t> bytes = segment(block, id);
    if (bytes.empty()) return false;
    const uint64_t digest = held_.places()[block].digests[*map.FindSegment(id)];
    if (SegmentDigest(keys_[block], id, bytes) != digest) return false;
  }
  return Unchanged(block);
}

void InPlaceBlocks::End(uint32_t usable_blocks) {
  slots_.assign(keys_.size(), {});
  held_.End(usable_blocks);
}

}  // namespace cairn
