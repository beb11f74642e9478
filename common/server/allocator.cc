#include "common/server/allocator.h"

#include <malloc.h>

#include <limits>

#include "common/base/check.h"

namespace cairn {
namespace {

// mallopt takes an int.
int ToInt(ByteSize size) {
  CAIRN_CHECK(size.bytes() <= static_cast<uint64_t>(std::numeric_limits<int>::max()));
  return static_cast<int>(size.bytes());
}

}  // namespace

bool TuneAllocator(const AllocatorTuning& tuning) {
  CAIRN_CHECK(tuning.arenas_max > 0);
  bool accepted = mallopt(M_ARENA_MAX, tuning.arenas_max) == 1;
  accepted &= mallopt(M_MMAP_THRESHOLD, ToInt(tuning.mmap_threshold)) == 1;
  accepted &= mallopt(M_TRIM_THRESHOLD, ToInt(tuning.trim_threshold)) == 1;
  accepted &= mallopt(M_TOP_PAD, ToInt(tuning.top_pad)) == 1;
  return accepted;
}

}  // namespace cairn
