// DevicePool: one allocation of a device, cut into slots.
//
// The pool is cut into segments of one size, and a segment into slots of one class; each segment
// takes the first class that needs one, and is free for another when its last slot is. Nothing is
// ever moved. A slot has a generation, which rises each time it is freed, and whenever its segment
// changes its class.
//
// Bookkeeping alone: after Make no call talks to the device, so it may be used under a lock. Who
// may write a slot while others still read it is not its business (slot_guards.h). Not thread-safe.
// Borrows the device, which must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/device/device.h"

namespace cairn::kernels {

class DevicePool {
 public:
  static constexpr uint32_t kSegmentsAtLeast = 16;
  static constexpr uint64_t kSegmentBytesMax = uint64_t{256} << 20;
  static constexpr uint64_t kSegmentAlignBytes = 4096;
  static constexpr uint64_t kSlotAlignBytes = 64;

  // Slots of different owners are in different segments.
  struct SlotClass {
    uint32_t owner = 0;
    uint64_t slot_bytes = 0;  // A multiple of kSlotAlignBytes.

    bool operator==(const SlotClass& other) const {
      return owner == other.owner && slot_bytes == other.slot_bytes;
    }
  };
  struct Slot {
    uint32_t segment = 0;
    uint32_t slot = 0;
  };
  struct SegmentInfo {
    SlotClass slot_class;  // Of a free one: the last it had.
    uint32_t slots = 0;
    uint32_t slots_used = 0;
  };

  // Takes the memory. Problem: too small, or the device refuses.
  static Problem Make(Device* device, uint64_t pool_bytes, std::unique_ptr<DevicePool>* pool);
  ~DevicePool();
  DevicePool(const DevicePool&) = delete;
  DevicePool& operator=(const DevicePool&) = delete;

  uint64_t pool_bytes() const { return segment_bytes_ * segments_.size(); }
  uint64_t used_bytes() const { return used_bytes_; }
  uint64_t slot_bytes_max() const { return segment_bytes_; }
  uint32_t segment_count() const { return static_cast<uint32_t>(segments_.size()); }
  SegmentInfo Info(uint32_t segment) const;

  // False: none of the class is free, and no segment, or it is larger than one.
  bool Allocate(const SlotClass& slot_class, Slot* slot);
  // Of this and what follows: the slot is held.
  void Free(Slot slot);
  std::byte* Address(Slot slot) const;
  uint64_t Generation(Slot slot) const;

 private:
  struct Segment {
    SlotClass slot_class;
    uint32_t slots = 0;
    std::vector<uint32_t> free;  // Of those below `generations.size()`: given out at least once.
    std::vector<uint64_t> generations;
    std::vector<bool> held;
    uint32_t slots_used = 0;
    uint64_t generation_min = 0;  // Above all that a slot had with another class.
    uint64_t generation_max = 0;

    bool HasFreeSlot() const { return slots_used < slots; }
  };

  DevicePool(Device* device, std::byte* memory, uint64_t segment_bytes, uint32_t segments);
  Segment* SegmentFor(const SlotClass& slot_class, uint32_t* index);
  void Assign(Segment* segment, const SlotClass& slot_class);
  const Segment& Held(Slot slot) const;

  Device* const device_;
  std::byte* const memory_;
  const uint64_t segment_bytes_;
  std::vector<Segment> segments_;
  uint64_t used_bytes_ = 0;
};

}  // namespace cairn::kernels
