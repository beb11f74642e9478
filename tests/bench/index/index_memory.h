// What the index takes of memory: counted by the allocator, not by the index.
#pragma once

#include "tests/bench/json_report.h"

namespace cairn::bench {

// Adds `bytes_per_block` (one holder each; the worst of several fills), `bytes_per_further_holder`
// (the worst of 1 to 16 further ones on each of many blocks) and `bytes_left_after_churn_share` (of
// the peak, when all holders restarted with nothing).
void AddIndexMemory(JsonReport* report);

}  // namespace cairn::bench
