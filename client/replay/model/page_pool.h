// PagePool: pages of one size with counted uses, each the memory of one block's part.
//
// A page taken is zeros, so that equal tokens give equal bytes, padding included. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "kernels/append.h"
#include "kernels/kv_pages.h"

namespace cairn::replay {

class PagePool {
 public:
  // REQUIRES: page_bytes is a positive multiple of 64.
  PagePool(uint64_t page_bytes, uint64_t pages_max);

  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;

  // A page of one use, or nothing when all pages are in use.
  std::optional<uint64_t> Take();
  void Share(uint64_t page);
  void Release(uint64_t page);  // One use less; a page without any is free.

  // REQUIRES of these: the page is in use.
  bool IsShared(uint64_t page) const;
  absl::Span<std::byte> Bytes(uint64_t page);
  absl::Span<const std::byte> Bytes(uint64_t page) const;

  uint64_t pages_in_use() const { return in_use_; }
  uint64_t page_bytes() const { return page_bytes_; }
  // Region i is page i. Valid until the next Take.
  const std::vector<kernels::KvRegion>& regions() const { return regions_; }
  const std::vector<kernels::WritableKvRegion>& writable_regions() const { return writable_; }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  struct Page {
    std::vector<Line> lines;
    uint64_t uses = 0;
  };

  const uint64_t page_bytes_;
  const uint64_t pages_max_;
  std::vector<Page> pages_;
  std::vector<uint64_t> free_;
  std::vector<kernels::KvRegion> regions_;
  std::vector<kernels::WritableKvRegion> writable_;
  uint64_t in_use_ = 0;
};

}  // namespace cairn::replay
