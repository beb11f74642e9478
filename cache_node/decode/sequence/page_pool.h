// PagePool: memory for the tokens that running sequences append, in pages of one block each, within
// a budget of its own.
//
// Pages are reserved before they are taken, and a reservation is backed by mapped memory: no
// overcommit, taking never fails. Memory is mapped in slabs of pages of one size; a slab without a
// page in use is given to another size when that needs it. So the budget bounds what is mapped. A
// page is charged to its tenant from its reservation on; one tenant can have no more than its
// share. A page taken is zeros: nothing of a tenant reaches another, and equal tokens give equal
// bytes, padding included.
//
// Not thread-safe (PageRef says what may be read elsewhere). Must outlive its reservations and
// pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cache_node/decode/sequence/page_ref.h"
#include "cache_node/decode/sequence/page_reservation.h"

namespace cairn::node {

struct PageSlab;

struct PoolPage {
  PageSlab* slab = nullptr;
  std::byte* bytes = nullptr;
  PageTenant* tenant = nullptr;  // While it is in use.
  uint64_t uses = 0;
  bool clean = true;  // It was never taken, so it is zeros.
};

struct PageSlab {
  PageSize* size = nullptr;
  std::byte* base = nullptr;
  std::vector<PoolPage> pages;
  std::vector<PoolPage*> free;
};

// All slabs of one page size. The pages that are free are at least those reserved.
struct PageSize {
  PagePool* pool = nullptr;
  uint64_t page_bytes = 0;
  uint64_t pages_per_slab = 0;
  uint64_t slab_bytes = 0;
  uint64_t used = 0;      // Pages,
  uint64_t reserved = 0;  // and pages that may still be taken.
  uint64_t holders = 0;   // Reservations, empty ones too.
  std::vector<std::unique_ptr<PageSlab>> slabs;
  std::set<PageSlab*> with_free;  // Lowest first, so that high ones become free.
};

struct PageTenant {
  std::string name;
  uint64_t bytes = 0;    // Used and reserved.
  uint64_t holders = 0;  // Reservations, empty ones too.
};

class PagePool {
 public:
  struct Options {
    uint64_t bytes_max = 0;         // 0: it has no pages.
    uint64_t tenant_bytes_max = 0;  // Of one tenant. 0: seven eighths of all.
  };
  static constexpr uint64_t kSlabBytes = uint64_t{2} << 20;

  explicit PagePool(const Options& options);
  // No page and no reservation is left.
  ~PagePool();

  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;

  // All or nothing: RESOURCE_EXHAUSTED says what is free. REQUIRES: page_bytes is a positive
  // multiple of 64. No pages are fine, and may grow later.
  absl::StatusOr<PageReservation> Reserve(absl::string_view tenant, uint64_t page_bytes,
                                          uint64_t pages);

  uint64_t bytes_max() const { return options_.bytes_max; }
  uint64_t used_bytes() const { return used_bytes_; }
  uint64_t reserved_bytes() const { return reserved_bytes_; }
  uint64_t mapped_bytes() const { return mapped_bytes_; }
  uint64_t BytesOf(absl::string_view tenant) const;  // Used and reserved.
  // Pages of this size that could be reserved now, by tenants that have none.
  uint64_t PagesFree(uint64_t page_bytes) const;

  // O(slabs): INTERNAL names what disagrees.
  absl::Status Audit() const;

 private:
  friend class PageRef;
  friend class PageReservation;

  void ShapeOf(uint64_t page_bytes, uint64_t* pages_per_slab, uint64_t* slab_bytes) const;
  PageSize* SizeOf(uint64_t page_bytes);
  PageTenant* TenantOf(absl::string_view name);
  PageReservation Hold(PageSize* size, PageTenant* tenant);  // Of no pages.
  absl::Status Grow(PageSize* size, PageTenant* tenant, uint64_t pages);
  absl::Status MapFor(PageSize* size, uint64_t pages);
  bool AddSlab(PageSize* size);
  // Unmaps a slab that nobody needs. False: there is none.
  bool DropSlab();
  void EndReserve(PageSize* size, PageTenant* tenant, uint64_t pages);
  PoolPage* Take(PageSize* size, PageTenant* tenant);
  // The last use ended.
  void Free(PoolPage* page);
  void EndHolder(PageSize* size, PageTenant* tenant);
  void ForgetTenant(PageTenant* tenant);

  const Options options_;
  uint64_t slab_bytes_target_;
  uint64_t used_bytes_ = 0;
  uint64_t reserved_bytes_ = 0;
  uint64_t mapped_bytes_ = 0;
  absl::flat_hash_map<uint64_t, std::unique_ptr<PageSize>> sizes_;  // By page_bytes.
  absl::flat_hash_map<std::string, std::unique_ptr<PageTenant>> tenants_;
};

}  // namespace cairn::node
