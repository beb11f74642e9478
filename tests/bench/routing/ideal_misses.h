// What an unlimited cache would miss of a trace: the work that no policy can spare.
#pragma once

#include <cstdint>

#include "tests/bench/eviction/block_trace.h"

namespace cairn::bench {

uint64_t IdealMissTokens(const BlockTrace& trace);

}  // namespace cairn::bench
