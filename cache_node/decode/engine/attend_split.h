// AttendSplit: which items have which slots in common, as passes of attention.
//
// Items whose runs begin with the same slots have those in one pass for all of them, and so on
// within each group of those that go on alike, as long as the KV that is then read once is worth
// the partial results; what each has of its own is a pass of its own. Slots are the same when their
// addresses are and both are full. Passes of an item are over ascending, disjoint slots that hold
// all that it sees.
//
// One split does one batch after another and keeps its memory. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "cache_node/decode/engine/attend_shape.h"
#include "cache_node/decode/slot_run.h"
#include "kernels/attention/visibility.h"

namespace cairn::node {

// Queries of one or more consecutive positions over one run of stored tokens. Where the results go
// is not where the queries are.
struct AttendItem {
  SlotRun run;  // What no query sees may be null slots.
  uint64_t position = 0;
  uint32_t rows = 0;
  uint32_t layer = 0;
  const std::byte* queries = nullptr;  // [rows][query_heads][key_dim]
  float* output = nullptr;             // [rows][query_heads][output_dim]
  float* log_sum_exp = nullptr;        // [rows][query_heads]
};

// What sharing did, in rows of all query heads, and stored bytes as kernels read them.
struct AttendTotals {
  uint64_t rows = 0;
  uint64_t shared_rows = 0;  // Of items that had a pass in common with others.
  uint64_t read_bytes = 0;   // Of passes.
  uint64_t saved_bytes = 0;  // What items on their own would have read beyond that.
};

class AttendSplit {
 public:
  // Passes of one item, its own included.
  static constexpr size_t kPassesMax = 4;

  // Items [begin, end) of passes() are over slots [first, last) of their runs, of which they see
  // something up to the `tokens`-th stored one.
  struct Group {
    size_t begin = 0;
    size_t end = 0;
    size_t first = 0;
    size_t last = 0;
    uint64_t tokens = 0;
  };

  // Replaces what it was. Both outlive its use. Items that see nothing have no pass.
  void Make(const AttendShape& shape, absl::Span<const AttendItem> items);

  const std::vector<Group>& groups() const { return groups_; }
  // Items, by their index; those of an item come in the order of its slots.
  const std::vector<size_t>& passes() const { return passes_; }
  const AttendTotals& totals() const { return totals_; }

 private:
  // Items order_[begin, end) have their first `depth` slots in common, and `passes` passes over the
  // first `done` of them.
  struct Branch {
    size_t begin = 0;
    size_t end = 0;
    size_t depth = 0;
    size_t done = 0;
    size_t passes = 0;
  };

  void SplitBranch(const Branch& branch);
  // Brings items with the same slot behind the first `depth` together. Those without a full one
  // there come last; the answer is where they begin.
  size_t SortBySlot(size_t begin, size_t end, size_t depth);
  size_t CommonSlots(const Branch& branch) const;
  // Whether a pass over slots [branch.done, last) for all items of the branch reads so much less
  // that partial results are worth it.
  bool IsWorth(const Branch& branch, size_t last) const;
  // Whether no slot of what is seen, from slot `first` on, is null: windows of two items may lie on
  // either side of what was given back.
  bool IsThere(const AttendItem& item, size_t first, const kernels::Visibility& seen) const;
  void AddShared(const Branch& branch, size_t last);
  void AddOwn(size_t item, size_t first);

  // What some row of the item sees of the `tokens` stored ones from slot `first` of its run on.
  kernels::Visibility SeenOf(const AttendItem& item, size_t first, uint64_t tokens) const;
  uint64_t TokensOf(size_t slots) const { return slots * uint64_t{shape_->kv.page_tokens}; }
  size_t FullSlots(const AttendItem& item) const;

  const AttendShape* shape_ = nullptr;
  absl::Span<const AttendItem> items_;
  std::vector<size_t> order_;
  std::vector<Branch> branches_;  // Still to be split.
  std::vector<Group> groups_;
  std::vector<size_t> passes_;
  AttendTotals totals_;
};

}  // namespace cairn::node
