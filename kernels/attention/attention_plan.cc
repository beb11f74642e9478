#include "kernels/attention/attention_plan.h"

#include <algorithm>
#include <cmath>

namespace cairn::kernels {
namespace {

uint64_t DivideUp(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

TileGeometry GeometryOf(const AttentionBatch& batch) {
  TileGeometry geometry;
  geometry.key_dim = batch.shape.key_dim;
  geometry.value_dim = OutputDim(batch);
  geometry.dtype = batch.shape.dtype;
  geometry.query_dtype = batch.query_dtype;
  geometry.values_in_keys = batch.shape.value_dim == 0;
  geometry.scaled = batch.shape.scales != KvScales::kNone;
  geometry.softmax_scale = batch.softmax_scale;
  geometry.soft_cap = batch.logit_soft_cap;
  return geometry;
}

}  // namespace

void AttentionPlan::PlanSequence(const AttentionSequence& sequence, SequencePlan* plan) {
  plan->seen = VisibilityOfAll(batch, sequence);
  plan->chunk_tokens = kChunkTokensMin;
  while (sequence.kv_tokens / plan->chunk_tokens >= kChunksMax) plan->chunk_tokens *= 2;
  const Visibility& seen = plan->seen;
  plan->sink_chunks = DivideUp(seen.sink_end, plan->chunk_tokens);
  plan->window_chunk = std::max(plan->sink_chunks, seen.begin / plan->chunk_tokens);
  const uint64_t end = DivideUp(seen.end, plan->chunk_tokens);
  const bool has_window = seen.begin < seen.end && plan->window_chunk < end;
  plan->chunks = plan->sink_chunks + (has_window ? end - plan->window_chunk : 0);
  plan->rows = sequence.query_count * group;
  plan->row_groups = DivideUp(plan->rows, kItemRows);
}

void AttentionPlan::GroupHeads(uint64_t workers) {
  const uint32_t kv_heads = batch.shape.kv_heads;
  const uint64_t head_bytes =
      rows_max * (uint64_t{geometry.value_dim} * sizeof(float) + uint64_t{geometry.key_dim} * 2);
  uint64_t items_of_head = 0;
  for (const SequencePlan& plan : sequences) items_of_head += plan.row_groups * plan.chunks;
  item_heads = kv_heads;
  const auto is_too_many = [&] {
    const uint64_t groups = DivideUp(kv_heads, item_heads);
    return item_heads * head_bytes > kItemStateBytesMax ||
           items_of_head * groups < workers * kWorkerItems;
  };
  while (item_heads > 1 && is_too_many()) item_heads = (item_heads + 1) / 2;
  if (geometry.values_in_keys) item_heads = 1;  // Its converted keys are its values.
  head_groups = DivideUp(kv_heads, item_heads);
}

Problem AttentionPlan::Make(const AttentionBatch& new_batch, const TileOps* new_ops,
                            uint64_t workers, uint64_t partial_bytes_max) {
  batch = new_batch;
  segment = SegmentOf(batch.shape);
  geometry = GeometryOf(batch);
  ops = new_ops;
  tile_tokens = uint64_t{kOctetTokens} * ops->tile_octets(geometry);
  group = batch.query_heads / batch.shape.kv_heads;
  items = 0;
  rows_max = 0;
  sequences.assign(batch.sequence_count, {});
  for (uint64_t s = 0; s < batch.sequence_count; ++s) {
    PlanSequence(batch.sequences[s], &sequences[s]);
    rows_max = std::max(rows_max, std::min<uint64_t>(sequences[s].rows, kItemRows));
  }
  GroupHeads(workers);
  const uint64_t partial_bytes = (uint64_t{geometry.value_dim} + 1) * sizeof(float);
  uint64_t partials = 0, counters = 0;
  for (SequencePlan& plan : sequences) {
    plan.first_item = items;
    plan.first_partial = partials;
    plan.first_counter = counters;
    items += head_groups * plan.row_groups * plan.chunks;
    counters += head_groups * plan.row_groups;
    if (plan.chunks > 1) partials += batch.shape.kv_heads * plan.rows * plan.chunks;
    if (partials > partial_bytes_max / partial_bytes) {
      return "partial results of more than " + std::to_string(partial_bytes_max) +
             " bytes: give fewer queries or sequences at once";
    }
  }
  if (partials * geometry.value_dim > partials_capacity) {
    partials_capacity = partials * geometry.value_dim;
    partial_outputs.reset(new float[partials_capacity]);
    partial_log_sum_exps.reset(new float[partials_capacity]);
  }
  if (counters > counters_capacity) {
    chunks_left = std::make_unique<std::atomic<uint32_t>[]>(counters);
    counters_capacity = counters;
  }
  for (uint64_t s = 0; s < batch.sequence_count; ++s) {
    const SequencePlan& plan = sequences[s];
    for (uint64_t i = 0; i < head_groups * plan.row_groups; ++i) {
      chunks_left[plan.first_counter + i].store(static_cast<uint32_t>(plan.chunks),
                                                std::memory_order_relaxed);
    }
    if (plan.chunks == 0) WriteEmpty(s);
  }
  return "";
}

void AttentionPlan::WriteEmpty(uint64_t sequence) const {
  const AttentionSequence& rows = batch.sequences[sequence];
  for (uint64_t q = 0; q < rows.query_count; ++q) {
    std::fill_n(rows.queries[q].output, uint64_t{batch.query_heads} * geometry.value_dim, 0.0f);
    std::fill_n(rows.queries[q].log_sum_exp, batch.query_heads, -INFINITY);
  }
}

AttentionItem AttentionPlan::ItemAt(uint64_t index) const {
  // The last sequence that begins at or before the item; those without items begin where the next
  // one does.
  const auto after =
      std::upper_bound(sequences.begin(), sequences.end(), index,
                       [](uint64_t i, const SequencePlan& plan) { return i < plan.first_item; });
  AttentionItem item;
  item.sequence = static_cast<uint64_t>(after - sequences.begin()) - 1;
  const SequencePlan& plan = sequences[item.sequence];
  const uint64_t rest = index - plan.first_item;
  item.chunk = rest % plan.chunks;
  item.row_group = rest / plan.chunks % plan.row_groups;
  item.head_group = rest / plan.chunks / plan.row_groups;
  return item;
}

void AttentionPlan::Advance(AttentionItem* item) const {
  const SequencePlan& plan = sequences[item->sequence];
  if (++item->chunk < plan.chunks) return;
  item->chunk = 0;
  if (++item->row_group < plan.row_groups) return;
  item->row_group = 0;
  if (++item->head_group < head_groups) return;
  item->head_group = 0;
  do {
    ++item->sequence;
  } while (item->sequence < sequences.size() &&
           sequences[item->sequence].chunks * sequences[item->sequence].row_groups == 0);
}

uint64_t AttentionPlan::RowsOf(const AttentionItem& item) const {
  return std::min<uint64_t>(kItemRows, PlanOf(item).rows - item.FirstRow());
}

uint32_t AttentionPlan::HeadsOf(const AttentionItem& item) const {
  return std::min(item_heads, batch.shape.kv_heads - FirstHead(item));
}

uint64_t AttentionPlan::PartialOf(const AttentionItem& item, uint32_t kv_head, uint64_t row) const {
  const SequencePlan& plan = PlanOf(item);
  return plan.first_partial + (uint64_t{kv_head} * plan.rows + row) * plan.chunks;
}

const AttentionQuery& AttentionPlan::QueryOf(uint64_t sequence, uint64_t row) const {
  return batch.sequences[sequence].queries[row / group];
}

float* AttentionPlan::OutputOf(uint64_t sequence, uint32_t kv_head, uint64_t row) const {
  const uint64_t head = uint64_t{kv_head} * group + row % group;
  return QueryOf(sequence, row).output + head * geometry.value_dim;
}

float* AttentionPlan::LogSumExpOf(uint64_t sequence, uint32_t kv_head, uint64_t row) const {
  return QueryOf(sequence, row).log_sum_exp + uint64_t{kv_head} * group + row % group;
}

const void* AttentionPlan::QueryRowOf(uint64_t sequence, uint32_t kv_head, uint64_t row) const {
  const uint64_t head = uint64_t{kv_head} * group + row % group;
  const uint64_t row_bytes = RowBytes(batch.query_dtype, geometry.key_dim);
  return static_cast<const std::byte*>(QueryOf(sequence, row).query) + head * row_bytes;
}

}  // namespace cairn::kernels
