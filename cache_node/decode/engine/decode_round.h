// DecodeRound: steps that are done together: appends first, in order, then attention in as few
// batches as their shapes need.
//
// One round after another; keeps its memory. Not thread-safe: whoever has the engine's turn uses
// it, and what it computes it reads from pages that nobody else may change meanwhile. Borrows all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cache_node/decode/engine/attend_plan.h"
#include "cache_node/decode/engine/decode_step.h"
#include "cache_node/decode/engine/leased_runs.h"
#include "cache_node/decode/sequence/sequence_table.h"
#include "kernels/attention/attention_runner.h"
#include "kernels/worker_pool.h"

namespace cairn::node {

class DecodeRound {
 public:
  // What it takes to compute, about.
  struct Cost {
    uint64_t bytes = 0;     // Of KV, if nothing of it were shared.
    uint64_t products = 0;  // Of numbers of queries with numbers of KV.
  };

  DecodeRound(LeasedRuns* leases, SequenceTable* sequences)
      : leases_(leases), sequences_(sequences) {}

  // Looks up what the steps are about and appends what they bring; an item that is wrong has its
  // status then. Steps that were cancelled are left out: all their items are CANCELLED.
  // REQUIRES: CheckItems was called; results of all are within AttendPlan::kResultBytesMax.
  void Prepare(std::vector<DecodeStep*> steps, absl::Time now);
  const Cost& cost() const { return cost_; }
  // Fills in the results. Once after Prepare.
  void Compute(kernels::AttentionRunner* runner, kernels::WorkerPool* pool);
  // The steps, whose results are in. Forgets them.
  std::vector<DecodeStep*> TakeSteps();

  // Of the last round: over all batches.
  const AttendTotals& totals() const { return totals_; }
  uint64_t batches() const { return batches_; }
  uint64_t items() const { return places_.size(); }

 private:
  struct Place {
    DecodeStep* step = nullptr;
    size_t item = 0;
    SlotRun run;
  };

  // Tenant, and which.
  using SequenceKey = std::pair<absl::string_view, SequenceId>;
  struct Found {
    SequenceKey key;
    absl::StatusOr<const Sequence*> sequence;
  };

  void AppendAll(DecodeStep* step);
  absl::Status Append(const DecodeStep& step, const DecodeItem& item);
  void FindRuns(DecodeStep* step);
  absl::StatusOr<SlotRun> FindRun(const DecodeStep& step, const DecodeItem& item);
  absl::StatusOr<SlotRun> FindStored(const DecodeStep& step, const DecodeItem& item);
  // Once a round for each sequence: to find it again might end it, under runs of its slots.
  absl::StatusOr<const Sequence*> FindSequence(const DecodeStep& step, const DecodeItem& item);
  void AddCost(const DecodeStep& step, const DecodeItem& item, const SlotRun& run);
  // Brings those of places_ from `begin` on that go with the first of them to it; where they end.
  size_t SortBatch(size_t begin);
  void ComputeBatch(size_t begin, size_t end, kernels::AttentionRunner* runner,
                    kernels::WorkerPool* pool);
  // Nothing is answered of what was removed meanwhile.
  void RecheckAll();
  static void Fail(DecodeResult* result, absl::Status status);

  LeasedRuns* const leases_;
  SequenceTable* const sequences_;
  AttendPlan plan_;
  std::vector<DecodeStep*> steps_;
  std::vector<Place> places_;  // Items that are asked for something.
  std::vector<Found> found_;
  absl::flat_hash_map<SequenceKey, size_t> found_at_;
  std::vector<AttendItem> batch_;
  Cost cost_;
  AttendTotals totals_;
  uint64_t batches_ = 0;
};

}  // namespace cairn::node
