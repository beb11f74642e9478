// SeedRange: which seeds to run: CAIRN_SIM_SEEDS of them from CAIRN_SIM_FIRST_SEED on. The flags
// --seeds=N and --first_seed=S of the test program say the same.
#pragma once

#include <cstdint>

namespace cairn::sim {

struct SeedRange {
  // Of the environment; `count_default` without one. A value that is no number ends the process.
  static SeedRange FromEnvironment(uint64_t count_default);
  // Takes the flags out of the arguments, into the environment.
  static void TakeFlags(int* argc, char** argv);

  uint64_t first = 1;
  uint64_t count = 0;
};

}  // namespace cairn::sim
