#include "client/cpp/local/local_copy.h"

#include <algorithm>

#include "client/cpp/local/held_places.h"
#include "common/identity/segment_digest.h"
#include "kernels/copy_digest.h"

namespace cairn {
namespace {

// Segments of one block lie one after the other, and a block is more than caches keep.
constexpr uint64_t kStreamSegmentBytesMin = 16 << 10;

bool Fits(const LocalLink::Place& place, const PayloadMap& map) {
  return place.segment != nullptr && place.segment->slot_bytes() >= map.block_bytes() &&
         place.digests.size() == map.segment_count();
}

bool CopyBlock(const LocalLink::Place& from, const PayloadMap& map, const BlockKey& key,
               size_t block, const SegmentSelection& selection, SegmentPlace place) {
  const absl::Span<const uint8_t> slot = from.segment->Slot(from.slot);
  for (size_t i = 0; i < selection.segment_count(); ++i) {
    const SegmentId& id = selection.At(i).id;
    const size_t segment = *map.FindSegment(id);
    if (std::find(from.absent.begin(), from.absent.end(), segment) != from.absent.end()) {
      return false;
    }
    const absl::Span<uint8_t> to = place(block, id);
    // One pass: what is hashed is what is copied.
    const uint64_t digest =
        kernels::CopyAndHash(to.data(), slot.data() + map.SegmentOffset(segment), to.size(),
                             SegmentDigestSeed(key, id), kStreamSegmentBytesMin);
    if (digest != from.digests[segment]) return false;
  }
  return from.segment->Generation(from.slot) == from.generation;
}

}  // namespace

void CopyLocalBlocks(LocalLink* local, const NamespaceHandle& name_space,
                     absl::Span<const BlockKey> keys, SegmentPlace place, const GetOptions& options,
                     const SegmentSelection& selection, absl::Time deadline,
                     ReceivedBlocks* received) {
  const absl::StatusOr<HeldPlaces> held =
      HeldPlaces::Ask(local, name_space.fingerprint(), keys,
                      {.lease = options.lease, .each = true, .deadline = deadline});
  if (!held.ok()) {
    local->CountFallback();
    return;
  }
  const PayloadMap& map = name_space.payload_map();
  uint64_t copied = 0;
  for (size_t block = 0; block < keys.size(); ++block) {
    const LocalLink::Place& from = held->places()[block];
    if (!Fits(from, map)) continue;
    if (!CopyBlock(from, map, keys[block], block, selection, place)) {
      local->CountChanged();
      continue;
    }
    received->TakeWhole(block);
    ++copied;
  }
  local->CountCopied(copied, copied * selection.bytes());
}

}  // namespace cairn
