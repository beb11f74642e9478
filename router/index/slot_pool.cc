#include "router/index/slot_pool.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "common/base/check.h"

namespace cairn::router {
namespace {

constexpr size_t kExactCounts = 8;  // Each has a class of its own; above, four a power of two.

uint16_t NextFree(const HolderSlot* array) {
  uint16_t next = 0;
  std::memcpy(&next, array, sizeof(next));
  return next;
}

void SetNextFree(uint16_t next, HolderSlot* array) {
  std::memcpy(static_cast<void*>(array), &next, sizeof(next));
}

}  // namespace

SlotPool::Size SlotPool::ClassOf(size_t count) {
  if (count <= kExactCounts) return {count - 1, count};
  const auto bits = static_cast<size_t>(std::bit_width(count - 1));
  const size_t step = size_t{1} << (bits - 3);
  const size_t steps = (count + step - 1) / step;  // 5 to 8.
  return {kExactCounts + (bits - 4) * 4 + steps - 5, steps * step};
}

SlotPool::SlotPool() : classes_(kClasses) {
  for (size_t count = 1; count <= kCountMax; ++count) {
    const Size size = ClassOf(count);
    Class& of = classes_[size.index];
    of.room = static_cast<uint32_t>(size.room);
    of.arrays =
        static_cast<uint32_t>(std::max<size_t>(1, kChunkBytes / (size.room * sizeof(HolderSlot))));
  }
}

// An open chunk with a free array.
uint32_t SlotPool::OpenChunk(Class* of) {
  while (!of->open.empty()) {
    const uint32_t index = of->open.back();
    Chunk& chunk = of->chunks[index];
    if (chunk.slots != nullptr && chunk.free != kNone) return index;
    chunk.open = false;
    of->open.pop_back();
  }
  uint32_t index = static_cast<uint32_t>(of->chunks.size());
  if (of->gone.empty()) {
    of->chunks.emplace_back();
  } else {
    index = of->gone.back();
    of->gone.pop_back();
  }
  Chunk& chunk = of->chunks[index];
  chunk.slots = std::make_unique<HolderSlot[]>(size_t{of->room} * of->arrays);
  chunk.free = 0;
  for (uint32_t array = 0; array < of->arrays; ++array) {
    const bool is_last = array + 1 == of->arrays;
    SetNextFree(is_last ? kNone : static_cast<uint16_t>(array + 1),
                &chunk.slots[size_t{array} * of->room]);
  }
  chunk.open = true;
  of->open.push_back(index);
  return index;
}

SlotPool::Handle SlotPool::Allocate(size_t count) {
  CAIRN_CHECK(count > 0 && count <= kCountMax);
  Class& of = classes_[ClassOf(count).index];
  const uint32_t index = OpenChunk(&of);
  Chunk& chunk = of.chunks[index];
  const uint16_t array = chunk.free;
  chunk.free = NextFree(&chunk.slots[size_t{array} * of.room]);
  ++chunk.used;
  return index * of.arrays + array;
}

void SlotPool::Free(Handle handle, size_t count) {
  CAIRN_CHECK(count > 0 && count <= kCountMax);
  Class& of = classes_[ClassOf(count).index];
  const uint32_t index = handle / of.arrays;
  CAIRN_CHECK(index < of.chunks.size() && of.chunks[index].used > 0);
  Chunk& chunk = of.chunks[index];
  if (--chunk.used == 0) {
    chunk.slots = nullptr;
    of.gone.push_back(index);
    return;
  }
  SetNextFree(chunk.free, &chunk.slots[handle % of.arrays * size_t{of.room}]);
  chunk.free = static_cast<uint16_t>(handle % of.arrays);
  if (chunk.open) return;
  chunk.open = true;
  of.open.push_back(index);
}

SlotPool::Handle SlotPool::Resize(Handle handle, size_t count, size_t new_count) {
  if (ClassOf(count).index == ClassOf(new_count).index) return handle;
  const Handle resized = Allocate(new_count);
  const HolderSlot* const from = At(handle, count);
  std::copy(from, from + std::min(count, new_count), At(resized, new_count));
  Free(handle, count);
  return resized;
}

}  // namespace cairn::router
