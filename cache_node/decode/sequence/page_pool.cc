#include "cache_node/decode/sequence/page_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn::node {
namespace {

constexpr uint64_t kMapBytes = 4096;  // Mappings are multiples of it.

constexpr uint64_t RoundUp(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

// Slabs that so many pages need.
uint64_t SlabsFor(const PageSize& size, uint64_t pages) {
  return (pages + size.pages_per_slab - 1) / size.pages_per_slab;
}

bool HasSurplus(const PageSize& size) {
  return size.slabs.size() > SlabsFor(size, size.used + size.reserved);
}

}  // namespace

PagePool::PagePool(const Options& options) : options_(options) {
  // Small pools have small slabs, so that several sizes find room.
  slab_bytes_target_ = std::clamp(options.bytes_max / 16, kMapBytes, kSlabBytes);
}

PagePool::~PagePool() {
  CAIRN_CHECK(used_bytes_ == 0 && reserved_bytes_ == 0);
  for (const auto& [page_bytes, size] : sizes_) {
    CAIRN_CHECK(size->holders == 0);
    for (const auto& slab : size->slabs) munmap(slab->base, size->slab_bytes);
  }
}

absl::StatusOr<PageReservation> PagePool::Reserve(absl::string_view tenant, uint64_t page_bytes,
                                                  uint64_t pages) {
  CAIRN_CHECK(page_bytes > 0 && page_bytes % 64 == 0);
  PageReservation reservation = Hold(SizeOf(page_bytes), TenantOf(tenant));
  if (absl::Status status = reservation.Grow(pages); !status.ok()) return status;
  return reservation;
}

PageReservation PagePool::Hold(PageSize* size, PageTenant* tenant) {
  ++size->holders;
  ++tenant->holders;
  return PageReservation(this, size, tenant);
}

uint64_t PagePool::BytesOf(absl::string_view tenant) const {
  const auto it = tenants_.find(tenant);
  return it == tenants_.end() ? 0 : it->second->bytes;
}

PageSize* PagePool::SizeOf(uint64_t page_bytes) {
  std::unique_ptr<PageSize>& size = sizes_[page_bytes];
  if (size == nullptr) {
    size = std::make_unique<PageSize>();
    size->pool = this;
    size->page_bytes = page_bytes;
    ShapeOf(page_bytes, &size->pages_per_slab, &size->slab_bytes);
  }
  return size.get();
}

void PagePool::ShapeOf(uint64_t page_bytes, uint64_t* pages_per_slab, uint64_t* slab_bytes) const {
  *pages_per_slab = std::max<uint64_t>(1, slab_bytes_target_ / page_bytes);
  *slab_bytes = RoundUp(*pages_per_slab * page_bytes, kMapBytes);
}

uint64_t PagePool::PagesFree(uint64_t page_bytes) const {
  CAIRN_CHECK(page_bytes > 0);
  uint64_t pages = 0;
  uint64_t bytes = options_.bytes_max - mapped_bytes_;
  for (const auto& [other_bytes, size] : sizes_) {
    if (other_bytes == page_bytes) {
      pages += size->slabs.size() * size->pages_per_slab - size->used - size->reserved;
      continue;
    }
    const auto empty = static_cast<uint64_t>(std::count_if(
        size->slabs.begin(), size->slabs.end(),
        [&size = size](const auto& slab) { return slab->free.size() == size->pages_per_slab; }));
    const uint64_t surplus = size->slabs.size() - SlabsFor(*size, size->used + size->reserved);
    bytes += std::min(empty, surplus) * size->slab_bytes;
  }
  uint64_t pages_per_slab = 0, slab_bytes = 0;
  ShapeOf(page_bytes, &pages_per_slab, &slab_bytes);
  return pages + bytes / slab_bytes * pages_per_slab;
}

PageTenant* PagePool::TenantOf(absl::string_view name) {
  std::unique_ptr<PageTenant>& tenant = tenants_[name];
  if (tenant == nullptr) {
    tenant = std::make_unique<PageTenant>();
    tenant->name = std::string(name);
  }
  return tenant.get();
}

absl::Status PagePool::Grow(PageSize* size, PageTenant* tenant, uint64_t pages) {
  if (pages == 0) return absl::OkStatus();
  const uint64_t tenant_max = options_.tenant_bytes_max != 0
                                  ? std::min(options_.tenant_bytes_max, options_.bytes_max)
                                  : options_.bytes_max - options_.bytes_max / 8;
  if (tenant->bytes > tenant_max || pages > (tenant_max - tenant->bytes) / size->page_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        pages, " pages of ", size->page_bytes, " bytes are more than the tenant's share: it has ",
        tenant->bytes, " of at most ", tenant_max, " bytes of decode memory"));
  }
  if (absl::Status status = MapFor(size, pages); !status.ok()) return status;
  size->reserved += pages;
  reserved_bytes_ += pages * size->page_bytes;
  tenant->bytes += pages * size->page_bytes;
  return absl::OkStatus();
}

absl::Status PagePool::MapFor(PageSize* size, uint64_t pages) {
  const uint64_t needed = SlabsFor(*size, size->used + size->reserved + pages);
  while (size->slabs.size() < needed) {
    const uint64_t missing = (needed - size->slabs.size()) * size->slab_bytes;
    if (missing > options_.bytes_max - mapped_bytes_) {
      if (missing <= options_.bytes_max && DropSlab()) continue;
      return absl::ResourceExhaustedError(absl::StrCat(
          pages, " pages of ", size->page_bytes,
          " bytes do not fit: ", options_.bytes_max - used_bytes_ - reserved_bytes_, " of ",
          options_.bytes_max, " bytes of decode memory are neither used nor reserved"));
    }
    if (!AddSlab(size)) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the machine has no ", size->slab_bytes, " bytes more for decode memory"));
    }
  }
  return absl::OkStatus();
}

bool PagePool::AddSlab(PageSize* size) {
  void* const base =
      mmap(nullptr, size->slab_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return false;
  auto slab = std::make_unique<PageSlab>();
  slab->size = size;
  slab->base = static_cast<std::byte*>(base);
  slab->pages.resize(size->pages_per_slab);
  for (uint64_t i = size->pages_per_slab; i-- > 0;) {
    slab->pages[i].slab = slab.get();
    slab->pages[i].bytes = slab->base + i * size->page_bytes;
    slab->free.push_back(&slab->pages[i]);
  }
  mapped_bytes_ += size->slab_bytes;
  size->with_free.insert(slab.get());
  size->slabs.push_back(std::move(slab));
  return true;
}

bool PagePool::DropSlab() {
  for (auto it = sizes_.begin(); it != sizes_.end(); ++it) {
    PageSize* const size = it->second.get();
    if (!HasSurplus(*size)) continue;
    const auto empty = std::find_if(
        size->slabs.begin(), size->slabs.end(),
        [size](const auto& slab) { return slab->free.size() == size->pages_per_slab; });
    if (empty == size->slabs.end()) continue;
    size->with_free.erase(empty->get());
    CAIRN_CHECK(munmap((*empty)->base, size->slab_bytes) == 0);
    CAIRN_CHECK(mapped_bytes_ >= size->slab_bytes);
    mapped_bytes_ -= size->slab_bytes;
    size->slabs.erase(empty);
    if (size->slabs.empty() && size->holders == 0) sizes_.erase(it);
    return true;
  }
  return false;
}

void PagePool::EndReserve(PageSize* size, PageTenant* tenant, uint64_t pages) {
  CAIRN_CHECK(size->reserved >= pages && tenant->bytes >= pages * size->page_bytes);
  size->reserved -= pages;
  reserved_bytes_ -= pages * size->page_bytes;
  tenant->bytes -= pages * size->page_bytes;
}

PoolPage* PagePool::Take(PageSize* size, PageTenant* tenant) {
  CAIRN_CHECK(size->reserved > 0 && !size->with_free.empty());
  PageSlab* const slab = *size->with_free.begin();
  PoolPage* const page = slab->free.back();
  slab->free.pop_back();
  if (slab->free.empty()) size->with_free.erase(slab);
  CAIRN_CHECK(page->uses == 0);
  page->uses = 1;
  page->tenant = tenant;
  --size->reserved;
  ++size->used;
  reserved_bytes_ -= size->page_bytes;
  used_bytes_ += size->page_bytes;
  return page;
}

void PagePool::Free(PoolPage* page) {
  PageSlab* const slab = page->slab;
  PageSize* const size = slab->size;
  PageTenant* const tenant = std::exchange(page->tenant, nullptr);
  CAIRN_CHECK(page->uses == 0 && size->used > 0 && tenant->bytes >= size->page_bytes);
  if (slab->free.empty()) size->with_free.insert(slab);
  slab->free.push_back(page);
  --size->used;
  used_bytes_ -= size->page_bytes;
  tenant->bytes -= size->page_bytes;
  ForgetTenant(tenant);
}

void PagePool::EndHolder(PageSize* size, PageTenant* tenant) {
  CAIRN_CHECK(size->holders > 0 && tenant->holders > 0);
  --size->holders;
  --tenant->holders;
  ForgetTenant(tenant);
  if (size->holders == 0 && size->slabs.empty()) sizes_.erase(uint64_t{size->page_bytes});
}

void PagePool::ForgetTenant(PageTenant* tenant) {
  if (tenant->bytes > 0 || tenant->holders > 0) return;
  const std::string name = tenant->name;
  tenants_.erase(name);
}

absl::Status PagePool::Audit() const {
  uint64_t used = 0, reserved = 0, mapped = 0, charged = 0;
  for (const auto& [page_bytes, size] : sizes_) {
    uint64_t free = 0, in_use = 0;
    for (const auto& slab : size->slabs) {
      free += slab->free.size();
      for (const PoolPage& page : slab->pages) in_use += page.uses > 0;
      if (slab->free.empty() == size->with_free.contains(slab.get())) {
        return absl::InternalError("a slab is listed as it is not");
      }
    }
    if (in_use != size->used || free + in_use != size->slabs.size() * size->pages_per_slab) {
      return absl::InternalError(absl::StrCat("pages of ", page_bytes, " bytes are miscounted"));
    }
    if (free < size->reserved) return absl::InternalError("a reservation has no page");
    used += size->used * page_bytes;
    reserved += size->reserved * page_bytes;
    mapped += size->slabs.size() * size->slab_bytes;
  }
  for (const auto& [name, tenant] : tenants_) charged += tenant->bytes;
  if (used != used_bytes_ || reserved != reserved_bytes_ || mapped != mapped_bytes_) {
    return absl::InternalError("bytes of pages are miscounted");
  }
  if (charged != used + reserved) return absl::InternalError("tenants' pages are miscounted");
  if (mapped > options_.bytes_max) return absl::InternalError("more is mapped than may be");
  return absl::OkStatus();
}

}  // namespace cairn::node
