#include "tests/bench/index/index_memory.h"

#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/bench/index/index_rig.h"
#include "tests/bench/index/index_workload.h"

namespace cairn::bench {
namespace {

constexpr size_t kHolders = 128;
constexpr uint32_t kShards = 64;
constexpr size_t kFills = 24;
constexpr uint64_t kFirstFill = 400'000;
// Each fill a little over the last, so that the worst moment of a table that grows is among them.
constexpr double kFillStep = 1.06;
constexpr uint64_t kSharedBlocks = 50'000;
constexpr size_t kFurtherHolders[] = {1, 2, 3, 4, 6, 8, 12, 16};

double AllocatedBytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<double>(info.uordblks) + static_cast<double>(info.hblkhd);
}

void Put(router::HolderIndex holder, uint64_t number, IndexRig* rig) {
  const BlockKey key = KeyOfNumber(number);
  const uint8_t held = 1;
  rig->Feed(holder, key.bytes[0] % kShards, {&key, 1}, {&held, 1});
}

void AddBytesPerBlock(JsonReport* report) {
  const double before = AllocatedBytes();
  IndexRig rig(kHolders, kShards, size_t{64} << 20);
  const double empty = AllocatedBytes();
  double worst = 0;
  double sum = 0;
  uint64_t blocks = 0;
  double fill = kFirstFill;
  for (size_t i = 0; i < kFills; ++i, fill *= kFillStep) {
    for (; blocks < static_cast<uint64_t>(fill); ++blocks) {
      Put(static_cast<router::HolderIndex>(blocks % kHolders), blocks, &rig);
    }
    const double per_block = (AllocatedBytes() - empty) / static_cast<double>(blocks);
    worst = std::max(worst, per_block);
    sum += per_block;
  }
  const double peak = AllocatedBytes() - empty;
  for (size_t holder = 0; holder < kHolders; ++holder) {
    rig.Restart(static_cast<router::HolderIndex>(holder));
  }
  rig.SweepAll();
  report->Add("bytes_per_block", worst);
  report->Add("bytes_per_block_mean", sum / kFills);
  report->Add("bytes_empty", empty - before);
  report->Add("bytes_left_after_churn_share", (AllocatedBytes() - empty) / peak);
}

void AddBytesPerFurtherHolder(JsonReport* report) {
  IndexRig rig(kHolders, kShards, size_t{64} << 20);
  for (uint64_t block = 0; block < kSharedBlocks; ++block) Put(0, block, &rig);
  const double alone = AllocatedBytes();
  double worst = 0;
  router::HolderIndex holder = 1;
  for (const size_t further : kFurtherHolders) {
    for (; holder <= further; ++holder) {
      for (uint64_t block = 0; block < kSharedBlocks; ++block) Put(holder, block, &rig);
    }
    const double each = (AllocatedBytes() - alone) /
                        (static_cast<double>(kSharedBlocks) * static_cast<double>(further));
    worst = std::max(worst, each);
  }
  report->Add("bytes_per_further_holder", worst);
}

}  // namespace

void AddIndexMemory(JsonReport* report) {
  AddBytesPerBlock(report);
  AddBytesPerFurtherHolder(report);
}

}  // namespace cairn::bench
