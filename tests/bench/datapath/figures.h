// The families of figures of `cairn-bench datapath`: each measures and adds what it saw.
//
// Each starts what it needs and ends it again. Not OK for what kept it from measuring, never for a
// slow result.
#pragma once

#include "absl/status/status.h"
#include "tests/bench/json_report.h"

namespace cairn::bench {

// get_over_tcp, put_over_tcp, get_uds_over_uds, put_uds_over_uds, get_tls_over_tcp,
// put_tls_over_tcp: 16 parts of 2 MiB a call, one rank.
absl::Status AddLargeParts(JsonReport* report);
// get_256k_over_tcp, put_256k_over_tcp: 128 parts of 256 KiB for each of 4 ranks at once.
absl::Status AddRankParts(JsonReport* report);
// small_put_blocks_per_second, small_get_blocks_per_second: blocks of 4 KiB, 32 a call.
absl::Status AddSmallBlocks(JsonReport* report);
// lookup_keys_per_second, lookup_1000_keys_p50_ms, lookup_p99_under_bulk_ratio.
absl::Status AddLookups(JsonReport* report);
// shm_copy_over_floor, shm_in_place_cpu_us_per_block: 8 blocks of 2 MiB a call, on one host.
absl::Status AddShmParts(JsonReport* report);
// rss_over_limit: 1,000 clients, slow and fast.
absl::Status AddMemory(JsonReport* report);

}  // namespace cairn::bench
