// BlockWalk: all places of a store where a block can be, one after the other: slots of host memory,
// then copies on the device, then those on disk.
//
// Under the store's lock, which may be let go between two steps: a block that moves meanwhile may
// be seen twice, or not at all. Knows no block's fate, and changes nothing.
#pragma once

#include "cache_node/store/store_state.h"

namespace cairn::node {

class BlockWalk {
 public:
  // Goes to the next place. False at the end.
  bool Next(const StoreState& state);
  void Restart() { *this = BlockWalk(); }

  // What is at the place; not both. Good as long as the lock is held.
  BlockEntry* entry() const { return entry_; }  // Null: none, or one that has left the index.
  const StoreState::Copy& copy() const { return found_; }  // May be none.

 private:
  uint32_t segment_ = 0;
  uint32_t slot_ = 0;
  bool on_disk_ = false;
  DiskHandle handle_ = 1;
  BlockEntry* entry_ = nullptr;
  StoreState::Copy found_;
};

}  // namespace cairn::node
