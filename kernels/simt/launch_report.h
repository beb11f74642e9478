// LaunchReport: what emulated launches did, and the first thing that they did wrong.
#pragma once

#include <cstdint>

#include "kernels/problem.h"

namespace cairn::simt::emulated {

// Of one launch or of many. Bytes are those that threads asked for: two that read the same address
// count twice, as kernels shall read everything once.
struct LaunchReport {
  // Empty if nothing was wrong. Names the kernel, the block, the thread, the place of the source
  // and what happened there. A launch ends with its first problem: what it had to write is
  // undefined, the counts are those until then.
  kernels::Problem problem;
  uint64_t launches = 0;
  uint64_t blocks = 0;
  uint64_t global_loaded_bytes = 0;  // Asynchronous copies included.
  uint64_t global_stored_bytes = 0;
  uint64_t async_copies = 0;
  // How many times more than once a bank was needed: by the eight rows of one matrix, and by eight
  // neighbouring lanes that load or store 16 bytes each.
  uint64_t matrix_bank_conflicts = 0;
  uint64_t wide_bank_conflicts = 0;
  uint64_t fiber_switches = 0;
};

}  // namespace cairn::simt::emulated
