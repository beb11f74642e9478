#include "cache_node/store/block_walk.h"

#include <utility>

namespace cairn::node {

bool BlockWalk::Next(const StoreState& state) {
  entry_ = nullptr;
  found_ = {};
  if (segment_ < state.slots.memory().segment_count()) {
    const absl::Span<BlockEntry* const> entries = state.slots.EntriesOf(segment_);
    if (slot_ >= entries.size()) {
      ++segment_;
      slot_ = 0;
      return true;
    }
    BlockEntry* const entry = entries[slot_++];
    if (entry != nullptr && entry->life != BlockEntry::Life::kGone) entry_ = entry;
    return true;
  }
  const DiskIndex& tier = on_disk_ ? state.disk.index : state.device.index;
  if (handle_ >= tier.handle_end()) {
    if (std::exchange(on_disk_, true)) return false;
    handle_ = 1;
    return true;
  }
  if (tier.IsLive(handle_)) found_ = {.on_device = !on_disk_, .handle = handle_};
  ++handle_;
  return true;
}

}  // namespace cairn::node
