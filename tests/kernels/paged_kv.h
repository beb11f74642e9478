// PagedKv: pages of KV in memory of their own, for tests and benches of kernels.
//
// Slots hold the segments of all layers one after another, as a node's slots do; the page table is
// shuffled by a seed. Not thread-safe while being filled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/kv_pages.h"
#include "kernels/kv_segment.h"

namespace cairn::kernels {

class PagedKv {
 public:
  // Memory starts as zeros and is touched on demand.
  PagedKv(const KvShape& shape, uint64_t pages, uint64_t layers, uint64_t seed);
  ~PagedKv();

  PagedKv(const PagedKv&) = delete;
  PagedKv& operator=(const PagedKv&) = delete;

  // Normally distributed values, times `deviation`, in every layer of the table's first `pages`
  // pages; scales vary by head and token and differ between keys and values. Cheap: a pattern of 1
  // MiB is repeated.
  void FillRandom(uint64_t seed, float deviation, uint64_t pages);

  const KvShape& shape() const { return shape_; }
  const KvSegment& segment() const { return segment_; }
  const std::vector<KvPage>& table() const { return table_; }
  std::vector<KvPage>* mutable_table() { return &table_; }
  KvRegions Regions(uint64_t layer) const;
  const std::byte* base() const { return memory_; }
  uint64_t bytes() const { return region_.bytes; }

  std::byte* SegmentOfPage(const KvPage& page, uint64_t layer) const;
  // Row of a token, by its place in the table's order.
  std::byte* KeyRow(uint64_t token, uint32_t head, uint64_t layer = 0) const;
  std::byte* ValueRow(uint64_t token, uint32_t head, uint64_t layer = 0) const;

 private:
  void FillTile(std::byte* tile, uint64_t bytes, uint64_t offset) const;

  const KvShape shape_;
  const KvSegment segment_;
  const uint64_t layers_;
  std::byte* memory_ = nullptr;
  KvRegion region_;
  std::vector<KvPage> table_;
  std::vector<std::byte> pattern_;
};

}  // namespace cairn::kernels
