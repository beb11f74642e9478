#include "client/replay/model/page_pool.h"

#include <algorithm>

#include "common/base/check.h"

namespace cairn::replay {

PagePool::PagePool(uint64_t page_bytes, uint64_t pages_max)
    : page_bytes_(page_bytes), pages_max_(pages_max) {
  CAIRN_CHECK(page_bytes > 0 && page_bytes % sizeof(Line) == 0);
}

std::optional<uint64_t> PagePool::Take() {
  uint64_t page = pages_.size();
  if (!free_.empty()) {
    page = free_.back();
    free_.pop_back();
    std::fill(pages_[page].lines.begin(), pages_[page].lines.end(), Line{});
  } else if (page < pages_max_) {
    pages_.emplace_back();
    pages_.back().lines.resize(page_bytes_ / sizeof(Line), Line{});
    std::byte* const base = pages_.back().lines.front().bytes;
    regions_.push_back({base, page_bytes_});
    writable_.push_back({base, page_bytes_});
  } else {
    return std::nullopt;
  }
  CAIRN_CHECK(pages_[page].uses == 0);
  pages_[page].uses = 1;
  ++in_use_;
  return page;
}

void PagePool::Share(uint64_t page) {
  CAIRN_CHECK(page < pages_.size() && pages_[page].uses > 0);
  ++pages_[page].uses;
}

void PagePool::Release(uint64_t page) {
  CAIRN_CHECK(page < pages_.size() && pages_[page].uses > 0);
  if (--pages_[page].uses > 0) return;
  free_.push_back(page);
  --in_use_;
}

bool PagePool::IsShared(uint64_t page) const {
  CAIRN_CHECK(page < pages_.size() && pages_[page].uses > 0);
  return pages_[page].uses > 1;
}

absl::Span<std::byte> PagePool::Bytes(uint64_t page) {
  CAIRN_CHECK(page < pages_.size() && pages_[page].uses > 0);
  return {writable_[page].base, page_bytes_};
}

absl::Span<const std::byte> PagePool::Bytes(uint64_t page) const {
  CAIRN_CHECK(page < pages_.size() && pages_[page].uses > 0);
  return {regions_[page].base, page_bytes_};
}

}  // namespace cairn::replay
