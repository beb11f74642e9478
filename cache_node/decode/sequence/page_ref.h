// PageRef: one use of a page of a PagePool: memory of one block, of one tenant.
//
// Move-only; a page is given back when its last use ends. Not thread-safe, as its pool; but the
// bytes of a page that nobody writes may be read by another thread as long as the use lives. Must
// not outlive the pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/types/span.h"

namespace cairn::node {

struct PoolPage;

class PageRef {
 public:
  PageRef() = default;
  PageRef(PageRef&& other) noexcept : page_(std::exchange(other.page_, nullptr)) {}
  PageRef& operator=(PageRef&& other) noexcept;
  ~PageRef();

  explicit operator bool() const { return page_ != nullptr; }

  // REQUIRES of these: not empty.
  PageRef Share() const;
  uint64_t uses() const;  // This one among them.
  bool shared() const { return uses() > 1; }
  // To be written only by who has the only use.
  absl::Span<std::byte> bytes() const;

  friend bool operator==(const PageRef& a, const PageRef& b) { return a.page_ == b.page_; }

 private:
  friend class PagePool;
  friend class PageReservation;
  explicit PageRef(PoolPage* page) : page_(page) {}

  PoolPage* page_ = nullptr;
};

}  // namespace cairn::node
