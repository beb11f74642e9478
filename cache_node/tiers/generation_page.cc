#include "cache_node/tiers/generation_page.h"

#include <atomic>

#include "common/base/check.h"

namespace cairn::node {

static_assert(std::atomic_ref<uint64_t>::is_always_lock_free);

uint64_t GenerationPage::BytesFor(uint64_t slots) {
  const uint64_t page_bytes = MemorySegment::PageBytes();
  return (slots * sizeof(uint64_t) + page_bytes - 1) / page_bytes * page_bytes;
}

void GenerationPage::Raise(uint32_t slot, uint64_t generation) {
  CAIRN_CHECK((slot + uint64_t{1}) * sizeof(uint64_t) <= memory_->bytes().size());
  // Its memory is whole pages, so every u64 of it is aligned.
  std::atomic_ref<uint64_t> place(reinterpret_cast<uint64_t*>(memory_->bytes().data())[slot]);
  place.store(generation, std::memory_order_relaxed);
  // The slot's next bytes are written after this, by whichever thread gets it under the lock.
  std::atomic_thread_fence(std::memory_order_release);
}

}  // namespace cairn::node
