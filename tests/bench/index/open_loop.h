// RunOpenLoop: steps that are due at given times, whatever became of those before.
//
// One thread on a core of its own says when each is due; another, pinned to another core, does them
// in order. Only work that is done counts: the clock stops when the last step is. How late a step
// was said to be due, how long it waited and how long it took are kept apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace cairn::bench {

struct OpenLoopResult {
  // From when the first step was due until the last was done.
  double seconds = 0;
  // By step.
  std::vector<uint32_t> issue_lag_ns;
  std::vector<uint32_t> queue_wait_ns;
  std::vector<uint32_t> service_ns;
};

// `do_step(i)` for i below `steps`, step i due i / steps_per_second after the start; 0: all are due
// at once. Returns when all are done.
OpenLoopResult RunOpenLoop(size_t steps, double steps_per_second,
                           const std::function<void(size_t)>& do_step);

// The calling thread stays on this core, where the machine has it.
void PinThisThread(int core);

// Of a machine's clock that only goes on.
int64_t NowNs();

// The smallest value that `share` of the values do not exceed, in microseconds. 0 without values.
double PercentileUs(std::vector<uint32_t> values_ns, double share);

}  // namespace cairn::bench
