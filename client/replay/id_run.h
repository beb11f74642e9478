// IdRun: consecutive ids of blocks, the compact form in which prompts of traces are kept.
#pragma once

#include <cstdint>
#include <vector>

namespace cairn::replay {

// Ids in traces stay below this, so that ids made here never meet them.
inline constexpr uint64_t kTraceIdsEnd = uint64_t{1} << 63;

// first, first + 1, ... first + count - 1.
struct IdRun {
  uint64_t first = 0;
  uint64_t count = 0;

  friend bool operator==(const IdRun&, const IdRun&) = default;
};

// Appends `run`, as part of the last run where it goes on from it.
inline void AppendRun(IdRun run, std::vector<IdRun>* runs) {
  if (!runs->empty() && runs->back().first + runs->back().count == run.first) {
    runs->back().count += run.count;
  } else if (run.count > 0) {
    runs->push_back(run);
  }
}

}  // namespace cairn::replay
