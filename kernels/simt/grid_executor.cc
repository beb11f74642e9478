#include "kernels/simt/grid_executor.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace cairn::simt::emulated {
namespace {

constexpr uint64_t kBlocksYMax = 65535;
constexpr uint64_t kBlocksMax = 1 << 20;  // More would take minutes here.

kernels::Problem CheckGrid(const LaunchWork& work) {
  const std::string kernel = work.kernel;
  if (work.threads == 0 || work.threads % kLanes != 0 || work.threads > BlockMachine::kThreadsMax) {
    return kernel + ": " + std::to_string(work.threads) +
           " threads a block are not a multiple of 32 of at most 1024";
  }
  if (work.blocks_y > kBlocksYMax || uint64_t{work.blocks_x} * work.blocks_y > kBlocksMax) {
    return kernel + ": a grid of " + std::to_string(work.blocks_x) + " x " +
           std::to_string(work.blocks_y) + " blocks is more than the emulation takes";
  }
  if (work.shared_bytes > SharedMemory::kBytesMax) {
    return kernel + ": " + std::to_string(work.shared_bytes) +
           " bytes of shared memory are more than " + std::to_string(SharedMemory::kBytesMax);
  }
  return "";
}

void Add(const LaunchReport& more, LaunchReport* all) {
  if (all->problem.empty()) all->problem = more.problem;
  all->launches += more.launches;
  all->blocks += more.blocks;
  all->global_loaded_bytes += more.global_loaded_bytes;
  all->global_stored_bytes += more.global_stored_bytes;
  all->async_copies += more.async_copies;
  all->matrix_bank_conflicts += more.matrix_bank_conflicts;
  all->wide_bank_conflicts += more.wide_bank_conflicts;
  all->fiber_switches += more.fiber_switches;
}

}  // namespace

GridExecutor::GridExecutor(const Options& options, const MemoryRegistry* registry)
    : options_(options),
      machine_(std::make_unique<BlockMachine>(options.order, options.seed, registry)) {}

kernels::Problem GridExecutor::Run(const LaunchWork& work) {
  const std::lock_guard<std::mutex> lock(mutex_);
  LaunchReport report;
  report.launches = 1;
  report.problem = CheckGrid(work);
  if (report.problem.empty()) {
    machine_->BeginLaunch(work, &report);
    RunGrid(work);
    machine_->EndLaunch();
  }
  Add(report, &report_);
  return report.problem;
}

void GridExecutor::RunGrid(const LaunchWork& work) {
  const uint32_t count = work.blocks_x * work.blocks_y;
  std::vector<uint32_t> blocks(count);
  std::iota(blocks.begin(), blocks.end(), 0u);
  if (options_.order == LaneOrder::kReverse) std::reverse(blocks.begin(), blocks.end());
  if (options_.order == LaneOrder::kRandom) {
    std::shuffle(blocks.begin(), blocks.end(), std::mt19937_64(options_.seed));
  }
  for (const uint32_t block : blocks) {
    if (!machine_->RunBlock(block % work.blocks_x, block / work.blocks_x)) return;
  }
}

LaunchReport GridExecutor::TakeReport() {
  const std::lock_guard<std::mutex> lock(mutex_);
  LaunchReport report;
  std::swap(report, report_);
  return report;
}

}  // namespace cairn::simt::emulated
