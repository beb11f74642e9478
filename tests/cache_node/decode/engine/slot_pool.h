// SlotPool: blocks of a layout in memory of their own, with known, valid numbers; and what
// attention over them is, from the kernels' reference.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "cache_node/decode/engine/attend_shape.h"
#include "cache_node/decode/slot_run.h"
#include "common/identity/payload_map.h"

namespace cairn::node {

// Numbers of one item, and room for its results, which is NaN before.
struct TestRows {
  uint64_t position = 0;
  uint32_t rows = 0;
  std::vector<std::byte> queries;
  std::vector<float> output;
  std::vector<float> log_sum_exp;
};

class SlotPool {
 public:
  SlotPool(const Layout& layout, uint64_t seed);

  const PayloadMap& map() const { return map_; }
  // A block with numbers of its own in all groups that are not opaque.
  const std::byte* NewSlot();
  TestRows NewRows(const AttendShape& shape, uint64_t position, uint32_t rows);

  // Each slice for itself, in float64.
  static TestRows Reference(const AttendShape& shape, uint32_t layer, const SlotRun& run,
                            const TestRows& rows);

 private:
  void FillSegment(std::byte* segment, const Group& group, uint32_t kv_heads);
  void FillTile(std::byte* tile, const Group& group, uint64_t elements);

  struct alignas(64) Line {
    std::byte bytes[64];
  };
  const PayloadMap map_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Line[]>> slots_;
};

// Relative to the row's largest number; log-sum-exps too.
void ExpectNear(const TestRows& rows, const TestRows& reference, double tolerance);

}  // namespace cairn::node
