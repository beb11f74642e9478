// How a slot is found for a new block: a free one, or one that another block of its class leaves,
// or in a memory segment that another class has not used for longer. No block of its class leaves
// for a newcomer that the class's policy holds for less worth.
//
// Functions over the state, called under the store's lock; what is slow about a memory segment is
// left to the caller, outside.
#pragma once

#include <cstdint>
#include <memory>

#include "cache_node/store/slot_space.h"
#include "cache_node/store/store_state.h"
#include "cache_node/tiers/memory_segment.h"

namespace cairn::node {

struct SlotAnswer {
  enum class Kind {
    kSlot,      // `slot` is allocated.
    kRemake,    // A memory segment is to be made anew (Remake), then ask again.
    kAgain,     // Steps are used up: unlock, and ask again.
    kNone,      // Nothing can be evicted for it now.
    kDeclined,  // It is not worth what would be.
  };
  Kind kind = Kind::kNone;
  SlotRef slot;
  uint32_t segment = 0;
  uint64_t segment_bytes = 0;
  std::unique_ptr<MemorySegment> old;
};

// Memory segments that may be made anew for one slot, and of these how many the kernel may refuse.
inline constexpr uint32_t kRemakesMax = 4;
inline constexpr uint32_t kRefusedRemakesMax = 2;

// What a slot is for, as the class's policy is asked. Without traits it comes in whatever leaves.
struct Newcomer {
  const EvictionPolicy::BlockTraits* traits = nullptr;
  UseStamp request = 0;  // That brings it.
};

// `remakes` were asked for already for this slot, and `refused` of them failed.
SlotAnswer TakeSlot(StoreState* state, ClassSpace* space, Newcomer newcomer, uint32_t remakes,
                    uint32_t refused);

// After kRemake: `made` may be null, when the kernel refused it.
void PutRemade(StoreState* state, const SlotClass& slot_class, uint32_t segment,
               std::unique_ptr<MemorySegment> made);

// Evicts blocks of the class's tenant until its quota has room for one more slot of the class.
enum class QuotaRoom { kThere, kAgain, kOver, kDeclined };
QuotaRoom MakeQuotaRoom(StoreState* state, ClassSpace* space, Newcomer newcomer);

// Evicts until `bytes` more fit in the index's memory.
enum class IndexRoom { kThere, kNone, kDeclined };
IndexRoom MakeIndexRoom(StoreState* state, ClassSpace* space, Newcomer newcomer, uint64_t bytes);

}  // namespace cairn::node
