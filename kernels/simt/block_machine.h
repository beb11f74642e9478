// BlockMachine: runs one block after another, each thread on a fiber of its own.
//
// A thread runs until it meets its warp or its block; then the next one does, by the lane order.
// The last that arrives does what the operation does for all. A thread that does what no kernel may
// ends the launch: nobody runs on, and the report says who did what where. What may be done is
// said in simt.h. One launch at a time, on any OS thread; kernels find the machine by Current.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/simt/bank_ledger.h"
#include "kernels/simt/fiber.h"
#include "kernels/simt/global_writes.h"
#include "kernels/simt/launch_report.h"
#include "kernels/simt/memory_registry.h"
#include "kernels/simt/shared_memory.h"
#include "kernels/simt/site.h"
#include "kernels/simt/warp_operations.h"

namespace cairn::simt::emulated {

// Which of the threads that can run does. Results do not depend on it.
enum class LaneOrder : uint8_t { kForward, kReverse, kRandom };

enum class Operation : uint8_t {
  kNone,
  kSyncBlock,
  kSyncWarp,
  kShuffle,
  kBallot,
  kLoadMatrix,
  kLoadMatrixTransposed,
  kMultiplyBfloat16,
  kMultiplyFloat16,
};

struct LaunchWork {
  const char* kernel = "";  // Its name.
  uint32_t threads = 0;     // Of a block.
  uint32_t blocks_x = 1;
  uint32_t blocks_y = 1;
  uint32_t shared_bytes = 0;
  void (*body)(const void* params) = nullptr;
  const void* params = nullptr;
};

class BlockMachine {
 public:
  static constexpr uint32_t kThreadsMax = 1024;
  static constexpr uint32_t kWarpsMax = kThreadsMax / kLanes;

  // `registry` outlives the machine.
  BlockMachine(LaneOrder order, uint64_t seed, const MemoryRegistry* registry);

  // --- For the executor ---
  // Counts go into the report. Then RunBlock for each block, until one says false: a problem.
  void BeginLaunch(const LaunchWork& work, LaunchReport* report);
  bool RunBlock(uint32_t block_x, uint32_t block_y);
  void EndLaunch();

  // --- For primitives, on a fiber ---
  static BlockMachine& Current() { return *current_; }

  uint32_t block_x() const { return block_x_; }
  uint32_t block_y() const { return block_y_; }
  const LaunchWork& work() const { return work_; }
  uint32_t thread() const { return thread_; }
  LaneSlot& slot() { return slots_[thread_]; }

  void SyncBlock(Site site);
  // Until all lanes of the warp are here; what they brought and take is in slot().
  void Meet(Operation operation, Site site);

  void LoadGlobal(void* to, const void* from, uint32_t bytes, Site site);
  void StoreGlobal(void* to, const void* from, uint32_t bytes, Site site);
  uint32_t AtomicAdd(uint32_t* at, uint32_t value, Site site);
  void LoadShared(void* to, uint32_t from, uint32_t bytes, Site site);
  void StoreShared(uint32_t to, const void* from, uint32_t bytes, Site site);
  void CopyAsync(uint32_t to, const void* from, uint32_t valid_bytes, Site site);
  void CommitCopies(Site site);
  void WaitForCopies(uint32_t groups_left, Site site);

  // Ends the launch: `thread` did what the text, as of printf, says. Callers hold nothing that a
  // destructor gives back: their stack is forgotten.
  [[noreturn]] void Fail(uint32_t thread, Site site, const char* format, ...)
      __attribute__((format(printf, 4, 5)));

 private:
  struct Place {
    Operation operation = Operation::kNone;
    Site site;
  };
  struct Warp {
    uint32_t ready = 0;       // Lanes that can run.
    uint32_t waiting = 0;     // That wait for the others of the warp.
    uint32_t at_barrier = 0;  // For the block.
    uint32_t done = 0;
    uint32_t barriers = 0;  // Passed, of the warp.
    Place meeting;
    BankLedger banks;
  };
  struct AsyncCopy {
    uint32_t to = 0;
    uint32_t valid_bytes = 0;
    const void* from = nullptr;
  };
  // Copies not landed, in order, and how many of them each group that was committed has.
  struct CopyQueue {
    std::vector<AsyncCopy> copies;
    std::vector<uint32_t> groups;
    size_t committed = 0;  // Copies in groups.
  };

  static void EnterFiber();
  [[noreturn]] void RunThreads();
  void PrepareFibers();
  void FinishThread();
  void SwitchToNext();
  uint32_t PickThread();
  uint32_t PickBit(uint32_t bits);
  [[noreturn]] void FailDivergent();
  std::string DescribeThreads() const;
  void Report(uint32_t thread, Site site, const char* what);
  void Complete(Warp* warp);
  void CompleteLoadMatrix(Warp* warp, bool transposed);
  void ReleaseBlock();

  Moment Now(uint32_t thread) const {
    return {thread, block_barriers_, warps_[thread / kLanes].barriers};
  }
  void CheckGlobal(const void* at, uint32_t bytes, const char* verb, Site site);
  void CheckShared(uint32_t thread, uint32_t at, uint32_t bytes, const char* verb, Site site);
  void CheckFault(uint32_t thread, const AccessFault& fault, uint32_t at, uint32_t bytes,
                  Site site);
  void CheckFault(const GridFault& fault, const void* at, uint32_t bytes, Site site);

  // Of this OS thread, while it runs a launch.
  static inline thread_local BlockMachine* current_ = nullptr;

  const LaneOrder order_;
  const MemoryRegistry* const registry_;
  uint64_t random_;
  std::vector<MemoryRange> ranges_;
  uint64_t ranges_version_ = ~uint64_t{0};
  size_t last_range_ = 0;

  LaunchWork work_;
  LaunchReport* report_ = nullptr;
  uint32_t block_x_ = 0;
  uint32_t block_y_ = 0;
  uint64_t block_count_ = 0;  // Ever run; names blocks in global_writes_.
  uint64_t launch_first_block_ = 0;
  std::vector<uint64_t> block_places_;  // y << 32 | x of this launch's blocks, as they ran.

  uint32_t thread_ = 0;  // The one that runs.
  uint32_t threads_at_barrier_ = 0;
  uint32_t threads_done_ = 0;
  uint32_t ready_warps_ = 0;
  uint32_t block_barriers_ = 0;
  bool gave_up_ = false;
  std::string description_;  // Of a failure on its way into the report.
  Warp warps_[kWarpsMax];
  LaneSlot slots_[kThreadsMax];
  Place places_[kThreadsMax];
  CopyQueue copies_[kThreadsMax];

  SharedMemory shared_;
  GlobalWrites global_writes_;

  std::unique_ptr<FiberStacks> stacks_;
  std::unique_ptr<Fiber[]> fibers_;
  uint32_t fibers_prepared_ = 0;
  Fiber scheduler_;
};

}  // namespace cairn::simt::emulated
