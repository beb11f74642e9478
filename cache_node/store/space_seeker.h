// SpaceSeeker: an operation's search for one slot after another, each over as many locks as it
// takes: evictions are done in steps, and memory segments are made anew outside the lock.
//
// Belongs to one operation; Seek is called under the store's lock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "cache_node/store/space_path.h"
#include "cache_node/store/store_state.h"
#include "cache_node/tiers/memory_segment.h"

namespace cairn::node {

class SpaceSeeker {
 public:
  // A memory segment to be made anew outside the lock, and given to PutRemade (space_path.h).
  struct Remake {
    SlotClass slot_class;
    uint32_t segment = 0;
    uint64_t bytes = 0;
    std::unique_ptr<MemorySegment> old;
  };
  enum class Verdict {
    kSlot,      // `slot` is allocated, and the index has room.
    kAgain,     // Unlock, do what TakeRemake asks for, and seek again.
    kNone,      // There is no room for it now.
    kQuota,     // Its tenant may not have more now.
    kDeclined,  // It is not worth what would leave for it.
  };

  Verdict Seek(StoreState* state, ClassSpace* space, Newcomer newcomer, uint64_t index_bytes,
               SlotRef* slot);
  // The next search is for another block.
  void NextBlock();

  bool waits() const { return remake_.has_value(); }
  std::optional<Remake> TakeRemake();
  // The kernel would not make what TakeRemake asked for.
  void RemakeRefused() { ++refused_; }

 private:
  // How often space is looked for anew for one block, when others take what was freed.
  static constexpr uint32_t kAttemptsMax = 4096;

  std::optional<Remake> remake_;
  uint32_t attempts_ = 0;  // For the block at hand.
  uint32_t remakes_ = 0;   // For that block too.
  uint32_t refused_ = 0;
};

}  // namespace cairn::node
