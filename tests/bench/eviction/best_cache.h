// What the best caches hit on a trace: an unlimited one, and the best of so many blocks that knows
// the future (Belady's, which may also not take a block in).
//
// Exact to the block. Belady's goes over stretches of blocks that are always asked for together, so
// an interleaving of long conversations costs time by stretches. Pure functions.
#pragma once

#include <cstdint>

#include "tests/bench/eviction/block_trace.h"
#include "tests/bench/eviction/hit_counts.h"

namespace cairn::bench {

HitCounts UnlimitedHits(const BlockTrace& trace);

HitCounts BeladyHits(const BlockTrace& trace, uint64_t capacity);

}  // namespace cairn::bench
