// Lookups in a whole RouterCore while feeds are taken in on other threads.
#pragma once

#include "absl/status/status.h"
#include "tests/bench/index/index_workload.h"
#include "tests/bench/json_report.h"

namespace cairn::bench {

// Adds `lookup_slowdown_under_ingest`: the p99 of lookups beside four feeds that are taken in at a
// steady rate, over the p99 of the same lookups alone; both, and the rate, beside it.
absl::Status AddIndexContention(const IndexWorkload& workload, JsonReport* report);

}  // namespace cairn::bench
