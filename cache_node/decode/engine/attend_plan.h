// AttendPlan: queries over runs of slots as batches of the CPU's attention kernels.
//
// Runs what AttendSplit made of a batch, a kernel's sequence for each group and slice, and merges
// the parts of each item in the order of their positions. An item's numbers depend on how it was
// cut, within float32's rounding, and on nothing else of the batch.
//
// One plan runs one batch after another and keeps its memory. Not thread-safe. Memory beside that
// of page tables (16 bytes a slot and slice) stays within kPlanBytesMax.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cache_node/decode/engine/attend_shape.h"
#include "cache_node/decode/engine/attend_split.h"
#include "kernels/attention/attention_runner.h"
#include "kernels/attention/merge.h"
#include "kernels/worker_pool.h"

namespace cairn::node {

class AttendPlan {
 public:
  // Outputs and log-sum-exps of one batch.
  static constexpr uint64_t kResultBytesMax = uint64_t{8} << 20;
  // The kernels' partial results of one run of theirs: enough for one row of any shape.
  static constexpr uint64_t kPartialBytesMax = uint64_t{40} << 20;
  static constexpr uint64_t kPlanBytesMax =
      AttendSplit::kPassesMax * kResultBytesMax + kPartialBytesMax;

  explicit AttendPlan(uint64_t partial_bytes_max = kPartialBytesMax)
      : partial_bytes_max_(partial_bytes_max) {}

  // Fills outputs and log-sum-exps of all items; rows that see nothing are zeros and -infinity.
  // INTERNAL when a kernel refuses: what was written is then of no use. REQUIRES: layers of the
  // shape; results within kResultBytesMax; positions and tokens that kernels take (kKvTokensMax);
  // `runner` runs on `pool`.
  absl::Status Run(const AttendShape& shape, absl::Span<const AttendItem> items,
                   kernels::AttentionRunner* runner, kernels::WorkerPool* pool);

  // Of the last batch.
  const AttendTotals& totals() const { return split_.totals(); }

 private:
  struct Result {
    float* output = nullptr;
    float* log_sum_exp = nullptr;
  };
  // Of one item, in the order of their positions.
  struct Parts {
    size_t count = 0;
    kernels::PartialResult results[AttendSplit::kPassesMax];
  };
  // Of a sequence, while the vectors still grow.
  struct Indexes {
    size_t first_page = 0;
    size_t first_query = 0;
  };

  // Gives each pass its place: the first of an item that of its result.
  void PlaceResults();
  void MakeSequences();
  void AddSequences(const AttendSplit::Group& group, uint32_t slice);
  absl::Status RunKernels(kernels::AttentionRunner* runner);
  void Merge(kernels::WorkerPool* pool);
  void MergeItem(size_t item);
  uint64_t ResultElements(const AttendItem& item) const;

  const uint64_t partial_bytes_max_;
  const AttendShape* shape_ = nullptr;
  absl::Span<const AttendItem> items_;
  AttendSplit split_;
  std::vector<Result> results_;   // By pass.
  std::vector<Parts> parts_;      // By item.
  std::vector<uint32_t> merged_;  // Items of several parts.
  std::unique_ptr<float[]> partials_;
  uint64_t partials_capacity_ = 0;

  std::vector<kernels::KvPage> pages_;
  std::vector<kernels::AttentionQuery> queries_;
  std::vector<Indexes> indexes_;
  std::vector<kernels::AttentionSequence> sequences_;
};

}  // namespace cairn::node
