// MemoryRegistry: what the emulated device's global memory is. Kernels touch nothing else.
//
// Whoever allocates for the emulated device (kernels/device, a test) says so here, and takes it
// back before the memory goes. Ranges may lie side by side; an access never spans two of them, as
// two allocations of a device have nothing to do with each other. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace cairn::simt::emulated {

struct MemoryRange {
  uintptr_t begin = 0;
  uintptr_t end = 0;
};

class MemoryRegistry {
 public:
  // REQUIRES: overlaps nothing that is registered; `bytes` is not 0.
  void Add(const void* base, uint64_t bytes);
  // REQUIRES: Add of the same `base`.
  void Remove(const void* base);

  // Whether one range holds all of it.
  bool Holds(const void* at, uint64_t bytes) const;

  // Changes with each Add and Remove.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }
  // All ranges, ascending.
  std::vector<MemoryRange> Ranges() const;

 private:
  mutable std::mutex mutex_;
  std::map<uintptr_t, uintptr_t> ends_;  // Guarded by mutex_: end by begin.
  std::atomic<uint64_t> version_{0};
};

}  // namespace cairn::simt::emulated
