// PagePlaces: where segments of pages lie, by tables in the device's memory.
//
// Nothing from a table is believed before it was held against its region.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/append.h"
#include "kernels/kv_pages.h"
#include "kernels/simt/simt.h"

CAIRN_SIMT_BEGIN

struct PagePlaces {
  const WritableKvRegion* regions = nullptr;
  uint64_t region_count = 0;
  uint64_t segment_offset = 0;
  uint64_t segment_bytes = 0;
  const KvPage* pages = nullptr;
  uint64_t page_count = 0;

  // Null where the page's segment is not inside its region.
  CAIRN_SIMT_DEVICE std::byte* SegmentAt(uint64_t region, uint64_t offset) const {
    if (region >= region_count || offset % 64 != 0) return nullptr;
    std::byte* const base = simt::LoadGlobal(&regions[region].base);
    const uint64_t bytes = simt::LoadGlobal(&regions[region].bytes);
    if (offset > bytes || segment_offset > bytes - offset ||
        segment_bytes > bytes - offset - segment_offset) {
      return nullptr;
    }
    return base + offset + segment_offset;
  }

  // Likewise of a page beyond the table.
  CAIRN_SIMT_DEVICE std::byte* SegmentOf(uint64_t page) const {
    if (page >= page_count) return nullptr;
    return SegmentAt(simt::LoadGlobal(&pages[page].region), simt::LoadGlobal(&pages[page].offset));
  }
};

CAIRN_SIMT_END
