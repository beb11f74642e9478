#include "cache_node/store/block_walk.h"

namespace cairn::node {

bool BlockWalk::Next(const StoreState& state) {
  entry_ = nullptr;
  found_ = 0;
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
  if (!state.disk.enabled || handle_ >= state.disk.index.handle_end()) return false;
  if (state.disk.index.IsLive(handle_)) found_ = handle_;
  ++handle_;
  return true;
}

}  // namespace cairn::node
