#include "kernels/device/device_pool.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>

namespace cairn::kernels {
namespace {

// A slot that nobody holds is our own mistake, and would become somebody's wrong bytes.
void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "device pool: %s\n", what);
  std::abort();
}

}  // namespace

Problem DevicePool::Make(Device* device, uint64_t pool_bytes, std::unique_ptr<DevicePool>* pool) {
  const uint64_t bytes_min = kSegmentsAtLeast * kSegmentAlignBytes;
  if (pool_bytes < bytes_min) {
    return "a device pool of " + std::to_string(pool_bytes) +
           " bytes is too small: give at least " + std::to_string(bytes_min) + " bytes";
  }
  const uint64_t count =
      std::max<uint64_t>(kSegmentsAtLeast, (pool_bytes + kSegmentBytesMax - 1) / kSegmentBytesMax);
  if (count > std::numeric_limits<uint32_t>::max()) {
    return "a device pool of " + std::to_string(pool_bytes) + " bytes has too many segments";
  }
  const uint64_t segment_bytes = pool_bytes / count / kSegmentAlignBytes * kSegmentAlignBytes;
  std::byte* memory = nullptr;
  Problem problem = device->Allocate(segment_bytes * count, &memory);
  if (!problem.empty()) return problem;
  pool->reset(new DevicePool(device, memory, segment_bytes, static_cast<uint32_t>(count)));
  return {};
}

DevicePool::DevicePool(Device* device, std::byte* memory, uint64_t segment_bytes, uint32_t segments)
    : device_(device), memory_(memory), segment_bytes_(segment_bytes), segments_(segments) {}

DevicePool::~DevicePool() { device_->Free(memory_); }

DevicePool::SegmentInfo DevicePool::Info(uint32_t segment) const {
  Require(segment < segments_.size(), "there is no such segment");
  const Segment& one = segments_[segment];
  return {one.slot_class, one.slots, one.slots_used};
}

// One of the class with a free slot, the fullest, so that others come to be free; else one that
// nobody uses.
DevicePool::Segment* DevicePool::SegmentFor(const SlotClass& slot_class, uint32_t* index) {
  Segment* best = nullptr;
  Segment* unused = nullptr;
  for (Segment& segment : segments_) {
    const bool own = segment.slots_used > 0 && segment.slot_class == slot_class;
    if (segment.slots_used == 0 && unused == nullptr) unused = &segment;
    if (!own || !segment.HasFreeSlot()) continue;
    if (best == nullptr || segment.slots_used > best->slots_used) best = &segment;
  }
  if (best == nullptr) best = unused;
  if (best != nullptr) *index = static_cast<uint32_t>(best - segments_.data());
  return best;
}

void DevicePool::Assign(Segment* segment, const SlotClass& slot_class) {
  segment->slot_class = slot_class;
  segment->slots = static_cast<uint32_t>(segment_bytes_ / slot_class.slot_bytes);
  segment->free.clear();
  segment->held.clear();
  segment->generations.clear();
  segment->generation_min = ++segment->generation_max;
}

bool DevicePool::Allocate(const SlotClass& slot_class, Slot* slot) {
  Require(slot_class.slot_bytes > 0 && slot_class.slot_bytes % kSlotAlignBytes == 0,
          "a slot's size is a multiple of 64 bytes");
  if (slot_class.slot_bytes > segment_bytes_) return false;
  Segment* segment = SegmentFor(slot_class, &slot->segment);
  if (segment == nullptr) return false;
  if (!(segment->slot_class == slot_class)) Assign(segment, slot_class);
  if (segment->free.empty()) {
    slot->slot = static_cast<uint32_t>(segment->generations.size());
    segment->generations.push_back(segment->generation_min);
    segment->held.push_back(true);
  } else {
    slot->slot = segment->free.back();
    segment->free.pop_back();
    segment->held[slot->slot] = true;
  }
  Require(slot->slot < segment->slots, "a segment gave more slots than it has");
  ++segment->slots_used;
  used_bytes_ += slot_class.slot_bytes;
  return true;
}

const DevicePool::Segment& DevicePool::Held(Slot slot) const {
  Require(slot.segment < segments_.size(), "there is no such segment");
  const Segment& segment = segments_[slot.segment];
  Require(slot.slot < segment.held.size() && segment.held[slot.slot], "nobody holds the slot");
  return segment;
}

void DevicePool::Free(Slot slot) {
  static_cast<void>(Held(slot));
  Segment& segment = segments_[slot.segment];
  segment.held[slot.slot] = false;
  segment.free.push_back(slot.slot);
  const uint64_t generation = ++segment.generations[slot.slot];
  segment.generation_max = std::max(segment.generation_max, generation);
  --segment.slots_used;
  used_bytes_ -= segment.slot_class.slot_bytes;
}

std::byte* DevicePool::Address(Slot slot) const {
  const Segment& segment = Held(slot);
  return memory_ + slot.segment * segment_bytes_ + slot.slot * segment.slot_class.slot_bytes;
}

uint64_t DevicePool::Generation(Slot slot) const {
  Require(slot.segment < segments_.size(), "there is no such segment");
  const Segment& segment = segments_[slot.segment];
  return slot.slot < segment.generations.size() ? segment.generations[slot.slot]
                                                : segment.generation_min;
}

}  // namespace cairn::kernels
