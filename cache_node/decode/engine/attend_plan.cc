#include "cache_node/decode/engine/attend_plan.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "kernels/attention/attention_plan.h"

namespace cairn::node {
namespace {

using kernels::AttentionSequence;

// Merging fewer floats than that is not worth waking threads for.
constexpr uint64_t kInlineMergeElements = 64 << 10;

// Slots lie anywhere in the process's memory: one region that is all of it, but for the first and
// last lines.
constexpr uintptr_t kMemoryBase = kernels::kTileAlignBytes;
kernels::KvRegion AllMemory() {
  return {reinterpret_cast<const std::byte*>(kMemoryBase), UINTPTR_MAX - 2 * kMemoryBase};
}

// As kernels cut them (kernels/attention/attention_plan.h).
uint64_t ChunksOf(uint64_t kv_tokens) {
  uint64_t chunk_tokens = kernels::kChunkTokensMin;
  while (kv_tokens / chunk_tokens >= kernels::kChunksMax) chunk_tokens *= 2;
  return (kv_tokens + chunk_tokens - 1) / chunk_tokens;
}

uint64_t PartialBytesOfQuery(const AttendShape& shape, uint64_t kv_tokens) {
  const uint64_t chunks = ChunksOf(kv_tokens);
  const uint64_t chunk_bytes =
      uint64_t{shape.slice_query_heads} * (shape.output_dim + 1) * sizeof(float);
  return chunks > 1 ? chunks * chunk_bytes : 0;
}

}  // namespace

absl::Status AttendPlan::Run(const AttendShape& shape, absl::Span<const AttendItem> items,
                             kernels::AttentionRunner* runner, kernels::WorkerPool* pool) {
  shape_ = &shape;
  items_ = items;
  uint64_t elements = 0;
  for (const AttendItem& item : items) elements += ResultElements(item);
  CAIRN_CHECK(elements * sizeof(float) <= kResultBytesMax);
  split_.Make(shape, items);
  PlaceResults();
  MakeSequences();
  absl::Status status = RunKernels(runner);
  if (!status.ok()) return status;
  Merge(pool);
  return absl::OkStatus();
}

uint64_t AttendPlan::ResultElements(const AttendItem& item) const {
  return item.rows * (shape_->OutputRowElements() + shape_->query_heads);
}

void AttendPlan::PlaceResults() {
  parts_.assign(items_.size(), {});
  merged_.clear();
  results_.clear();
  uint64_t elements = 0;
  for (const size_t item : split_.passes()) {
    if (parts_[item].count++ > 0) elements += ResultElements(items_[item]);
  }
  if (elements > partials_capacity_) {
    partials_.reset(new float[elements]);
    partials_capacity_ = elements;
  }
  for (size_t i = 0; i < items_.size(); ++i) {
    const AttendItem& item = items_[i];
    if (parts_[i].count > 1) merged_.push_back(static_cast<uint32_t>(i));
    if (parts_[i].count == 0) {
      std::fill_n(item.output, item.rows * shape_->OutputRowElements(), 0.0f);
      std::fill_n(item.log_sum_exp, uint64_t{item.rows} * shape_->query_heads, -INFINITY);
    }
    parts_[i].count = 0;
  }
  float* next = partials_.get();
  for (const size_t i : split_.passes()) {
    const AttendItem& item = items_[i];
    Parts& parts = parts_[i];
    CAIRN_CHECK(parts.count < AttendSplit::kPassesMax);
    Result result = {item.output, item.log_sum_exp};
    if (parts.count > 0) {
      result = {next, next + item.rows * shape_->OutputRowElements()};
      next += ResultElements(item);
    }
    results_.push_back(result);
    parts.results[parts.count++] = {result.output, result.log_sum_exp};
  }
}

void AttendPlan::MakeSequences() {
  pages_.clear();
  queries_.clear();
  indexes_.clear();
  sequences_.clear();
  for (const AttendSplit::Group& group : split_.groups()) {
    for (uint32_t slice = 0; slice < shape_->slices; ++slice) AddSequences(group, slice);
  }
  for (size_t i = 0; i < sequences_.size(); ++i) {
    sequences_[i].pages = pages_.data() + indexes_[i].first_page;
    sequences_[i].queries = queries_.data() + indexes_[i].first_query;
  }
}

void AttendPlan::AddSequences(const AttendSplit::Group& group, uint32_t slice) {
  const AttendItem& any = items_[split_.passes()[group.begin]];
  const uint64_t page_tokens = shape_->kv.page_tokens;
  const uint64_t segment = shape_->SegmentOffset(slice, any.layer) - kMemoryBase;
  AttentionSequence sequence;
  sequence.kv_tokens = group.tokens;
  sequence.first_position = any.run.first_position + group.first * page_tokens;
  sequence.page_count = (group.tokens + page_tokens - 1) / page_tokens;
  CAIRN_CHECK(group.first + sequence.page_count <= group.last);
  Indexes at = {pages_.size(), queries_.size()};
  for (size_t i = group.first; i < group.first + sequence.page_count; ++i) {
    pages_.push_back({0, reinterpret_cast<uintptr_t>(any.run.slots[i]) + segment});
  }
  const uint64_t query_bytes = kernels::RowBytes(shape_->row_dtype, shape_->kv.key_dim);
  const uint64_t first_head = uint64_t{slice} * shape_->slice_query_heads;
  const uint64_t partial_bytes = PartialBytesOfQuery(*shape_, sequence.kv_tokens);
  uint64_t queries_max =
      kernels::kQueriesPerKvHeadMax / (shape_->slice_query_heads / shape_->kv.kv_heads);
  if (partial_bytes > 0) {
    queries_max = std::clamp<uint64_t>(partial_bytes_max_ / partial_bytes, 1, queries_max);
  }
  const auto end_sequence = [&] {
    sequences_.push_back(sequence);
    indexes_.push_back(at);
    sequence.query_count = 0;
    at.first_query = queries_.size();
  };
  for (size_t p = group.begin; p < group.end; ++p) {
    const AttendItem& item = items_[split_.passes()[p]];
    const Result& result = results_[p];
    for (uint64_t row = 0; row < item.rows; ++row) {
      const uint64_t head = row * shape_->query_heads + first_head;
      queries_.push_back({item.position + row, item.queries + head * query_bytes,
                          result.output + head * shape_->output_dim, result.log_sum_exp + head});
      if (++sequence.query_count == queries_max) end_sequence();
    }
  }
  if (sequence.query_count > 0) end_sequence();
}

absl::Status AttendPlan::RunKernels(kernels::AttentionRunner* runner) {
  const kernels::KvRegion memory = AllMemory();
  kernels::AttentionBatch batch;
  batch.shape = shape_->kv;
  batch.query_heads = shape_->slice_query_heads;
  batch.latent_value_dim = shape_->latent_value_dim;
  batch.query_dtype = shape_->row_dtype;
  batch.softmax_scale = shape_->softmax_scale;
  batch.logit_soft_cap = shape_->logit_soft_cap;
  batch.window_tokens = shape_->window_tokens;
  batch.sink_tokens = shape_->sink_tokens;
  batch.regions = {&memory, 1, 0};
  for (size_t begin = 0; begin < sequences_.size();) {
    uint64_t bytes = 0;
    size_t end = begin;
    while (end < sequences_.size()) {
      bytes +=
          sequences_[end].query_count * PartialBytesOfQuery(*shape_, sequences_[end].kv_tokens);
      if (end > begin && bytes > partial_bytes_max_) break;
      ++end;
    }
    batch.sequences = sequences_.data() + begin;
    batch.sequence_count = end - begin;
    const kernels::Problem problem = runner->Run(batch);
    if (!problem.empty()) {
      return absl::InternalError(absl::StrCat("attention refused what was checked: ", problem));
    }
    begin = end;
  }
  return absl::OkStatus();
}

void AttendPlan::MergeItem(size_t item) {
  const Parts& parts = parts_[item];
  const uint64_t rows = uint64_t{items_[item].rows} * shape_->query_heads;
  kernels::MergePartials(parts.results, parts.count, rows, shape_->output_dim, items_[item].output,
                         items_[item].log_sum_exp);
}

void AttendPlan::Merge(kernels::WorkerPool* pool) {
  uint64_t elements = 0;
  for (const uint32_t item : merged_) elements += ResultElements(items_[item]);
  if (elements <= kInlineMergeElements) {
    for (const uint32_t item : merged_) MergeItem(item);
    return;
  }
  pool->Run(
      static_cast<uint32_t>(merged_.size()),
      [](void* context, uint32_t index) {
        auto* const plan = static_cast<AttendPlan*>(context);
        plan->MergeItem(plan->merged_[index]);
      },
      this);
}

}  // namespace cairn::node
