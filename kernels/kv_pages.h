// KvRegion and KvPage: where pages lie. A page table is an array of KvPage.
//
// Plain values that own nothing. All offsets are 64 bits wide; nothing from a table is believed
// before it was held against its region.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cairn::kernels {

// Memory that pages lie in, say one mapped memory segment of a node. `base` is aligned to 64 bytes.
struct KvRegion {
  const std::byte* base = nullptr;
  uint64_t bytes = 0;
};

struct KvPage {
  uint64_t region = 0;  // Index of its region.
  uint64_t offset = 0;  // Of its slot within the region, a multiple of 64.
};

// A page's segment of one layer begins at page.offset + segment_offset, so that one table does for
// all layers of a part.
struct KvRegions {
  const KvRegion* regions = nullptr;
  uint64_t count = 0;
  uint64_t segment_offset = 0;  // A multiple of 64.
};

// Whether `bytes` at the page's segment lie within its region, aligned.
inline bool IsInside(const KvRegions& regions, const KvPage& page, uint64_t bytes) {
  if (page.region >= regions.count) return false;
  const uint64_t size = regions.regions[page.region].bytes;
  if (page.offset % 64 != 0 || regions.segment_offset % 64 != 0) return false;
  if (page.offset > size || regions.segment_offset > size - page.offset) return false;
  return bytes <= size - page.offset - regions.segment_offset;
}

// REQUIRES: IsInside for what will be read.
inline const std::byte* SegmentAt(const KvRegions& regions, const KvPage& page) {
  return regions.regions[page.region].base + page.offset + regions.segment_offset;
}

}  // namespace cairn::kernels
