// Copies of whole blocks between segments and an engine's tensor, byte for byte.
//
// Thread-safe for copies that write different blocks and pages. Where the engine's dtype differs
// from the stored one, the engine quantizes (quantize.h) first.
#pragma once

#include <cstdint>

#include "kernels/append.h"
#include "kernels/engine_tensor.h"
#include "kernels/kv_pages.h"
#include "kernels/kv_segment.h"
#include "kernels/problem.h"

namespace cairn::kernels {

struct BlockPlace {
  KvPage page;         // Of the store.
  uint64_t block = 0;  // Of the engine.
};

struct BlockCopy {
  KvShape shape;
  EngineTensor tensor;
  const WritableKvRegion* regions = nullptr;
  uint64_t region_count = 0;
  uint64_t segment_offset = 0;
  const BlockPlace* places = nullptr;
  uint64_t place_count = 0;
};

// From the engine's blocks into segments; writes their padding as zeros. On a problem (a block or a
// page out of range, strides that leave the tensor) nothing was written.
[[nodiscard]] Problem GatherBlocks(const BlockCopy& copy);

// From segments into the engine's blocks; reads segments only.
[[nodiscard]] Problem ScatterBlocks(const BlockCopy& copy);

}  // namespace cairn::kernels
