// ItemQueue: the items of an AttentionPlan, in runs, for strands to share.
//
// A strand takes its next run before it is done with the one before, so that it knows what to
// prefetch.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace cairn::kernels {

// Thread-safe.
class ItemQueue {
 public:
  ItemQueue(uint64_t items, uint64_t run_items) : items_(items), run_items_(run_items) {}

  // How many items from `begin` on are the caller's; 0: none are left.
  uint64_t Take(uint64_t* begin) {
    *begin = next_.fetch_add(run_items_, std::memory_order_relaxed);
    return *begin >= items_ ? 0 : std::min(run_items_, items_ - *begin);
  }

 private:
  const uint64_t items_;
  const uint64_t run_items_;
  std::atomic<uint64_t> next_{0};
};

}  // namespace cairn::kernels
