#include "kernels/simt/memory_registry.h"

#include <cstdio>
#include <cstdlib>
#include <iterator>

namespace cairn::simt::emulated {
namespace {

// Ours alone call this: a wrong range is a bug of the caller, and every check after it void.
void Require(bool holds, const char* what, uintptr_t base) {
  if (holds) return;
  std::fprintf(stderr, "MemoryRegistry: %s: 0x%llx\n", what, static_cast<unsigned long long>(base));
  std::abort();
}

}  // namespace

void MemoryRegistry::Add(const void* base, uint64_t bytes) {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(base);
  const std::lock_guard<std::mutex> lock(mutex_);
  Require(bytes > 0 && begin + bytes > begin, "an empty range", begin);
  const auto next = ends_.lower_bound(begin);
  Require(next == ends_.end() || next->first >= begin + bytes, "overlaps the one after it", begin);
  Require(next == ends_.begin() || std::prev(next)->second <= begin, "overlaps the one before it",
          begin);
  ends_.emplace(begin, begin + bytes);
  version_.fetch_add(1, std::memory_order_release);
}

void MemoryRegistry::Remove(const void* base) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Require(ends_.erase(reinterpret_cast<uintptr_t>(base)) == 1, "not registered",
          reinterpret_cast<uintptr_t>(base));
  version_.fetch_add(1, std::memory_order_release);
}

bool MemoryRegistry::Holds(const void* at, uint64_t bytes) const {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(at);
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto next = ends_.upper_bound(begin);
  return next != ends_.begin() && bytes <= std::prev(next)->second - begin &&
         begin < std::prev(next)->second;
}

std::vector<MemoryRange> MemoryRegistry::Ranges() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<MemoryRange> ranges;
  ranges.reserve(ends_.size());
  for (const auto& [begin, end] : ends_) ranges.push_back({begin, end});
  return ranges;
}

}  // namespace cairn::simt::emulated
