// PageReservation and PageRef: what is held of a PagePool.
#include "cache_node/decode/sequence/page_reservation.h"

#include <cstring>
#include <utility>

#include "cache_node/decode/sequence/page_pool.h"
#include "common/base/check.h"

namespace cairn::node {

PageRef& PageRef::operator=(PageRef&& other) noexcept {
  PageRef old(std::exchange(page_, std::exchange(other.page_, nullptr)));
  return *this;
}

PageRef::~PageRef() {
  if (page_ == nullptr) return;
  CAIRN_CHECK(page_->uses > 0);
  if (--page_->uses == 0) page_->slab->size->pool->Free(page_);
}

PageRef PageRef::Share() const {
  CAIRN_CHECK(page_ != nullptr && page_->uses > 0);
  ++page_->uses;
  return PageRef(page_);
}

uint64_t PageRef::uses() const {
  CAIRN_CHECK(page_ != nullptr);
  return page_->uses;
}

absl::Span<std::byte> PageRef::bytes() const {
  CAIRN_CHECK(page_ != nullptr);
  return {page_->bytes, page_->slab->size->page_bytes};
}

PageReservation::PageReservation(PageReservation&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      size_(std::exchange(other.size_, nullptr)),
      tenant_(std::exchange(other.tenant_, nullptr)),
      pages_(std::exchange(other.pages_, 0)) {}

PageReservation& PageReservation::operator=(PageReservation&& other) noexcept {
  if (this == &other) return *this;
  End();
  pool_ = std::exchange(other.pool_, nullptr);
  size_ = std::exchange(other.size_, nullptr);
  tenant_ = std::exchange(other.tenant_, nullptr);
  pages_ = std::exchange(other.pages_, 0);
  return *this;
}

PageReservation::~PageReservation() { End(); }

void PageReservation::End() {
  if (pool_ == nullptr) return;
  pool_->EndReserve(size_, tenant_, std::exchange(pages_, 0));
  std::exchange(pool_, nullptr)->EndHolder(size_, tenant_);
}

absl::Status PageReservation::Grow(uint64_t pages) {
  CAIRN_CHECK(pool_ != nullptr);
  absl::Status status = pool_->Grow(size_, tenant_, pages);
  if (status.ok()) pages_ += pages;
  return status;
}

void PageReservation::Shrink(uint64_t pages) {
  CAIRN_CHECK(pool_ != nullptr && pages_ >= pages);
  pool_->EndReserve(size_, tenant_, pages);
  pages_ -= pages;
}

PageRef PageReservation::Take() {
  CAIRN_CHECK(pool_ != nullptr && pages_ > 0);
  PoolPage* const page = pool_->Take(size_, tenant_);
  --pages_;
  if (!std::exchange(page->clean, false)) std::memset(page->bytes, 0, size_->page_bytes);
  return PageRef(page);
}

PageRef PageReservation::TakeCopyOf(const PageRef& page) {
  CAIRN_CHECK(pool_ != nullptr && pages_ > 0 && page && page.page_->slab->size == size_);
  PoolPage* const copy = pool_->Take(size_, tenant_);
  --pages_;
  copy->clean = false;
  std::memcpy(copy->bytes, page.page_->bytes, size_->page_bytes);
  return PageRef(copy);
}

bool PageReservation::Return(PageRef page) {
  CAIRN_CHECK(pool_ != nullptr && page && page.page_->slab->size == size_ &&
              page.page_->tenant == tenant_);
  const bool last = !page.shared();
  page = PageRef();
  // What was just freed is there to be reserved.
  if (last) CAIRN_CHECK_OK(Grow(1));
  return last;
}

PageReservation PageReservation::Split(uint64_t pages) {
  CAIRN_CHECK(pool_ != nullptr && pages_ >= pages);
  PageReservation part = pool_->Hold(size_, tenant_);
  pages_ -= pages;
  part.pages_ = pages;
  return part;
}

void PageReservation::Join(PageReservation other) {
  if (other.pages_ == 0) return;
  CAIRN_CHECK(pool_ == other.pool_ && size_ == other.size_ && tenant_ == other.tenant_);
  pages_ += std::exchange(other.pages_, 0);
}

}  // namespace cairn::node
