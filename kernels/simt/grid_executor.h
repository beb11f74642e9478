// GridExecutor: runs launches of kernels on the CPU, and holds them to the rules of simt.h.
//
// A launch runs at once and whole, on the calling thread; blocks go one after another, in the order
// that lanes have too. Thread-safe: launches of several threads wait for each other; executors of
// their own run at the same time. A launch that breaks a rule ends there, with a problem.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "kernels/problem.h"
#include "kernels/simt/block_machine.h"
#include "kernels/simt/launch_report.h"
#include "kernels/simt/memory_registry.h"

namespace cairn::simt::emulated {

class GridExecutor {
 public:
  struct Options {
    LaneOrder order = LaneOrder::kForward;
    uint64_t seed = 1;  // Of kRandom.
  };

  // `registry` is what global memory is; not owned, outlives the executor.
  GridExecutor(const Options& options, const MemoryRegistry* registry);

  // What is wrong with the grid itself, or what its threads did wrong.
  [[nodiscard]] kernels::Problem Run(const LaunchWork& work);

  // Of all launches since the last call; the problem is the first one's.
  LaunchReport TakeReport();

 private:
  void RunGrid(const LaunchWork& work);

  const Options options_;
  std::mutex mutex_;  // Guards what follows.
  const std::unique_ptr<BlockMachine> machine_;
  LaunchReport report_;
};

}  // namespace cairn::simt::emulated
