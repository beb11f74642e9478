// PageReservation: pages of one size that one tenant has a right to. Taking one never fails.
//
// Move-only; gives back what is left of it when destroyed. Not thread-safe, as its pool, which it
// must not outlive.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "cache_node/decode/sequence/page_ref.h"

namespace cairn::node {

class PagePool;
struct PageSize;
struct PageTenant;

class PageReservation {
 public:
  PageReservation() = default;
  PageReservation(PageReservation&& other) noexcept;
  PageReservation& operator=(PageReservation&& other) noexcept;
  ~PageReservation();

  uint64_t pages() const { return pages_; }

  // REQUIRES of what follows: it came from a pool (and was not moved from).
  // As PagePool::Reserve; nothing is done when it is refused.
  absl::Status Grow(uint64_t pages);
  void Shrink(uint64_t pages);  // REQUIRES: it has so many.
  // Of zeros, or a copy. REQUIRES: pages() > 0.
  PageRef Take();
  PageRef TakeCopyOf(const PageRef& page);
  // Ends a use of a page of the same tenant and size. Where it was the last one the right to a page
  // comes back. Answers whether it did.
  bool Return(PageRef page);
  // So many of its pages by themselves. REQUIRES: it has them.
  PageReservation Split(uint64_t pages);
  // Moves all of the other's pages here. REQUIRES: the same tenant and size, or an empty one.
  void Join(PageReservation other);

 private:
  friend class PagePool;
  PageReservation(PagePool* pool, PageSize* size, PageTenant* tenant)
      : pool_(pool), size_(size), tenant_(tenant) {}
  void End();

  PagePool* pool_ = nullptr;
  PageSize* size_ = nullptr;
  PageTenant* tenant_ = nullptr;
  uint64_t pages_ = 0;
};

}  // namespace cairn::node
