// SlotPool: the memory of blocks that more than one holder has: small arrays of slots.
//
// An array's room follows from how many slots it holds: exact up to 8, then at most a quarter more.
// Arrays of one room share chunks of about 4 KiB; a chunk without any goes back to the allocator.
// Handles are the caller's to keep beside the count. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "router/index/holder_slot.h"

namespace cairn::router {

class SlotPool {
 public:
  using Handle = uint32_t;
  static constexpr size_t kCountMax = kHoldersMax;

  SlotPool();

  // An array for `count` slots, with anything in it. REQUIRES: 0 < count <= kCountMax.
  Handle Allocate(size_t count);
  // REQUIRES: what Allocate gave for this count, or Resize.
  void Free(Handle handle, size_t count);
  HolderSlot* At(Handle handle, size_t count) {
    Class& of = classes_[ClassOf(count).index];
    return &of.chunks[handle / of.arrays].slots[handle % of.arrays * of.room];
  }
  const HolderSlot* At(Handle handle, size_t count) const {
    return const_cast<SlotPool*>(this)->At(handle, count);
  }
  // The array with room for another count, the slots that both have kept.
  Handle Resize(Handle handle, size_t count, size_t new_count);

 private:
  static constexpr size_t kClasses = 44;
  static constexpr size_t kChunkBytes = 4080;  // With the allocator's own word.
  static constexpr uint16_t kNone = UINT16_MAX;

  struct Chunk {
    std::unique_ptr<HolderSlot[]> slots;  // Null: it went back.
    uint16_t used = 0;
    uint16_t free = kNone;  // First free array; the next one's number is in its memory.
    bool open = false;      // Among its class's open ones.
  };
  struct Class {
    uint32_t room = 0;    // Slots of an array.
    uint32_t arrays = 0;  // Of a chunk.
    std::vector<Chunk> chunks;
    std::vector<uint32_t> open;  // Chunks that may have a free array,
    std::vector<uint32_t> gone;  // and those that went back.
  };
  struct Size {
    size_t index = 0;
    size_t room = 0;
  };

  static Size ClassOf(size_t count);
  static uint32_t OpenChunk(Class* of);

  std::vector<Class> classes_;
};

}  // namespace cairn::router
