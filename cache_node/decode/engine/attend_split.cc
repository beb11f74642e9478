#include "cache_node/decode/engine/attend_split.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <tuple>

#include "common/base/check.h"

namespace cairn::node {
namespace {

using kernels::Visibility;

// What one more partial result costs, in times that its bytes are read or written.
constexpr uint64_t kPartialPasses = 4;
// And what a query more in a pass does, in bytes read meanwhile.
constexpr uint64_t kPassBytes = 4 << 10;

uint64_t Tokens(const Visibility& seen) {
  if (seen.begin <= seen.sink_end) return seen.end;
  return seen.sink_end + seen.end - seen.begin;
}

// Both, and what lies between their windows.
Visibility Union(const Visibility& a, const Visibility& b) {
  Visibility all;
  all.sink_end = std::max(a.sink_end, b.sink_end);
  all.end = std::max(a.end, b.end);
  const uint64_t a_begin = a.begin < a.end ? a.begin : all.end;
  const uint64_t b_begin = b.begin < b.end ? b.begin : all.end;
  all.begin = std::min(a_begin, b_begin);
  return all;
}

}  // namespace

size_t AttendSplit::FullSlots(const AttendItem& item) const {
  return std::min<size_t>(item.run.slots.size(), item.run.tokens / shape_->kv.page_tokens);
}

Visibility AttendSplit::SeenOf(const AttendItem& item, size_t first, uint64_t tokens) const {
  kernels::AttentionBatch batch;
  batch.window_tokens = shape_->window_tokens;
  batch.sink_tokens = shape_->sink_tokens;
  kernels::AttentionSequence sequence;
  sequence.kv_tokens = tokens;
  sequence.first_position = item.run.first_position + TokensOf(first);
  kernels::AttentionQuery query;
  query.position = item.position;
  const Visibility first_row = VisibilityOf(batch, sequence, query);
  query.position = item.position + item.rows - 1;
  Visibility seen = Union(first_row, VisibilityOf(batch, sequence, query));
  if (seen.begin >= seen.end) seen.begin = seen.end = seen.sink_end;  // Nothing behind the sinks.
  return seen;
}

void AttendSplit::Make(const AttendShape& shape, absl::Span<const AttendItem> items) {
  shape_ = &shape;
  items_ = items;
  totals_ = {};
  groups_.clear();
  passes_.clear();
  order_.clear();
  for (size_t i = 0; i < items_.size(); ++i) {
    const AttendItem& item = items_[i];
    CAIRN_CHECK(item.layer < shape_->layers);
    CAIRN_CHECK(item.run.tokens <= TokensOf(item.run.slots.size()));
    totals_.rows += item.rows;
    if (item.rows > 0) order_.push_back(i);
  }
  // Items that may have something in common lie together: of one layer and place.
  std::sort(order_.begin(), order_.end(), [this](size_t a, size_t b) {
    const AttendItem& x = items_[a];
    const AttendItem& y = items_[b];
    return std::tie(x.layer, x.run.first_position, a) < std::tie(y.layer, y.run.first_position, b);
  });
  for (size_t begin = 0; begin < order_.size();) {
    const AttendItem& first = items_[order_[begin]];
    size_t end = begin + 1;
    while (end < order_.size() && items_[order_[end]].layer == first.layer &&
           items_[order_[end]].run.first_position == first.run.first_position) {
      ++end;
    }
    branches_.push_back({.begin = begin, .end = end, .depth = 0, .done = 0, .passes = 0});
    while (!branches_.empty()) {
      const Branch branch = branches_.back();
      branches_.pop_back();
      SplitBranch(branch);
    }
    begin = end;
  }
}

void AttendSplit::SplitBranch(const Branch& branch) {
  if (branch.end - branch.begin == 1 || branch.passes + 1 == kPassesMax) {
    for (size_t i = branch.begin; i < branch.end; ++i) AddOwn(order_[i], branch.done);
    return;
  }
  Branch next = branch;
  next.depth = CommonSlots(branch);
  if (next.depth > branch.done && IsWorth(branch, next.depth)) {
    AddShared(branch, next.depth);
    next.done = next.depth;
    ++next.passes;
  }
  const size_t alone = SortBySlot(branch.begin, branch.end, next.depth);
  for (size_t i = alone; i < branch.end; ++i) AddOwn(order_[i], next.done);
  for (size_t begin = branch.begin; begin < alone;) {
    const std::byte* const slot = items_[order_[begin]].run.slots[next.depth];
    size_t end = begin + 1;
    while (end < alone && items_[order_[end]].run.slots[next.depth] == slot) ++end;
    branches_.push_back({.begin = begin,
                         .end = end,
                         .depth = next.depth + 1,
                         .done = next.done,
                         .passes = next.passes});
    begin = end;
  }
}

size_t AttendSplit::SortBySlot(size_t begin, size_t end, size_t depth) {
  const auto has_slot = [&](size_t i) { return FullSlots(items_[i]) > depth; };
  const auto first = order_.begin() + static_cast<ptrdiff_t>(begin);
  const auto alone =
      std::stable_partition(first, order_.begin() + static_cast<ptrdiff_t>(end), has_slot);
  std::stable_sort(first, alone, [&](size_t a, size_t b) {
    return std::less<>()(items_[a].run.slots[depth], items_[b].run.slots[depth]);
  });
  return static_cast<size_t>(alone - order_.begin());
}

size_t AttendSplit::CommonSlots(const Branch& branch) const {
  const AttendItem& first = items_[order_[branch.begin]];
  size_t common = FullSlots(first);
  for (size_t i = branch.begin + 1; i < branch.end && common > branch.depth; ++i) {
    const AttendItem& item = items_[order_[i]];
    common = std::min(common, FullSlots(item));
    const std::byte* const* const a = first.run.slots.data();
    const std::byte* const* const b = item.run.slots.data();
    if (a == b || common == branch.depth) continue;  // Empty runs have null slots.
    const size_t left = common - branch.depth;
    // Most often all are the same, which this sees fastest.
    if (std::memcmp(a + branch.depth, b + branch.depth, left * sizeof(*a)) == 0) continue;
    common = static_cast<size_t>(
        std::mismatch(a + branch.depth, a + common, b + branch.depth).first - a);
  }
  CAIRN_CHECK(common >= branch.depth);
  return common;
}

bool AttendSplit::IsWorth(const Branch& branch, size_t last) const {
  const uint64_t tokens = TokensOf(last - branch.done);
  uint64_t alone = 0, cost = 0;
  Visibility all;
  for (size_t i = branch.begin; i < branch.end; ++i) {
    const AttendItem& item = items_[order_[i]];
    const Visibility seen = SeenOf(item, branch.done, tokens);
    if (Tokens(seen) == 0) continue;
    alone += Tokens(seen);
    all = Union(all, seen);
    const uint64_t rest = item.run.tokens - TokensOf(last);
    const bool is_all = branch.passes == 0 && Tokens(SeenOf(item, last, rest)) == 0;
    cost += kPassBytes;
    if (is_all) continue;
    cost += kPartialPasses * item.rows * (shape_->OutputRowBytes() + shape_->LogSumExpRowBytes());
  }
  if (alone <= Tokens(all) || !IsThere(items_[order_[branch.begin]], branch.done, all))
    return false;
  return (alone - Tokens(all)) * shape_->TokenBytes() > cost;
}

bool AttendSplit::IsThere(const AttendItem& item, size_t first, const Visibility& seen) const {
  if (shape_->window_tokens == 0) return true;
  const auto is_null = [](const std::byte* slot) { return slot == nullptr; };
  const uint64_t page_tokens = shape_->kv.page_tokens;
  const auto slots = item.run.slots.begin() + first;
  const auto end_of = [&](uint64_t token) {
    return slots + (token + page_tokens - 1) / page_tokens;
  };
  return std::none_of(slots, end_of(seen.sink_end), is_null) &&
         std::none_of(slots + seen.begin / page_tokens, end_of(seen.end), is_null);
}

void AttendSplit::AddShared(const Branch& branch, size_t last) {
  Group group;
  group.begin = passes_.size();
  group.first = branch.done;
  group.last = last;
  group.tokens = TokensOf(last - branch.done);
  uint64_t alone = 0;
  Visibility all;
  for (size_t i = branch.begin; i < branch.end; ++i) {
    const AttendItem& item = items_[order_[i]];
    const Visibility seen = SeenOf(item, branch.done, group.tokens);
    if (Tokens(seen) == 0) continue;
    passes_.push_back(order_[i]);
    alone += Tokens(seen);
    all = Union(all, seen);
    if (branch.passes == 0) totals_.shared_rows += item.rows;
  }
  group.end = passes_.size();
  group.tokens = all.end;
  totals_.read_bytes += Tokens(all) * shape_->TokenBytes();
  totals_.saved_bytes += (alone - Tokens(all)) * shape_->TokenBytes();
  groups_.push_back(group);
}

void AttendSplit::AddOwn(size_t item, size_t first) {
  const SlotRun& run = items_[item].run;
  const uint64_t skipped = TokensOf(first);
  CAIRN_CHECK(skipped <= run.tokens);
  const Visibility seen = SeenOf(items_[item], first, run.tokens - skipped);
  if (Tokens(seen) == 0) return;
  Group group;
  group.begin = passes_.size();
  group.end = group.begin + 1;
  group.first = first;
  group.last = run.slots.size();
  group.tokens = seen.end;
  passes_.push_back(item);
  groups_.push_back(group);
  totals_.read_bytes += Tokens(seen) * shape_->TokenBytes();
}

}  // namespace cairn::node
