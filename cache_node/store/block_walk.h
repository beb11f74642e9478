// BlockWalk: all places of a store where a block can be, one after the other: slots of host memory,
// then handles on disk.
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
  DiskHandle handle() const { return found_; }  // 0: none.

 private:
  uint32_t segment_ = 0;
  uint32_t slot_ = 0;
  DiskHandle handle_ = 1;
  BlockEntry* entry_ = nullptr;
  DiskHandle found_ = 0;
};

}  // namespace cairn::node
