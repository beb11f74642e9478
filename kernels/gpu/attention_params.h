// What every attention kernel is given, and what a block reads of its plan.
#pragma once

#include "kernels/gpu/attention_plan_format.h"
#include "kernels/kv_dtype.h"
#include "kernels/simt/simt.h"

CAIRN_SIMT_BEGIN

struct AttentionParams {
  const std::byte* plan = nullptr;
  uint32_t* counters = nullptr;
  float* partials = nullptr;  // [partial][value_dim], the log-sum-exp behind each row.
  uint64_t segment_offset = 0;
  uint64_t key_offset = 0;  // Of the tiles and scales within a segment.
  uint64_t value_offset = 0;
  uint64_t key_scales_offset = 0;
  uint64_t value_scales_offset = 0;
  uint32_t page_tokens = 0;
  uint32_t key_dim = 0;
  uint32_t value_dim = 0;
  uint32_t key_row_bytes = 0;
  uint32_t value_row_bytes = 0;  // 0: values are the first part of each key.
  uint32_t group_heads = 0;      // Query heads of a KV head.
  KvDtype dtype = KvDtype::kFloat32;
  KvDtype query_dtype = KvDtype::kFloat32;
  KvScales scales = KvScales::kNone;
  float softmax_scale = 1;
  float soft_cap = 0;
  uint32_t stage_units = kBlockWarps;  // A power of two up to kBlockWarps.
  bool has_low_queries = false;        // Queries are a high and a low part.
};

inline constexpr float kLog2E = 1.44269504088896f;
inline constexpr float kLn2 = 0.693147180559945f;

CAIRN_SIMT_DEVICE bool Sees(const GpuSeen& seen, uint32_t token) {
  return token < seen.sink_end || (token >= seen.begin && token < seen.end);
}

// A logit in base 2, capped.
CAIRN_SIMT_DEVICE float LogitOf(const AttentionParams& params, float scaled) {
  if (params.soft_cap > 0) scaled = params.soft_cap * simt::Tanh(scaled / params.soft_cap);
  return scaled * kLog2E;
}

// The units of an item: runs [sink_begin, + sink_units) and [window_begin, ...).
struct ItemUnits {
  uint32_t sink_begin = 0;
  uint32_t sink_units = 0;
  uint32_t window_begin = 0;
  uint32_t units = 0;

  CAIRN_SIMT_DEVICE uint32_t At(uint32_t i) const {
    return i < sink_units ? sink_begin + i : window_begin + (i - sink_units);
  }
};

// One item, as all threads of its block know it.
struct AttentionWork {
  const GpuPlanGroup* group = nullptr;
  const GpuPlanQuery* queries = nullptr;
  const uint64_t* pages = nullptr;
  GpuSeen any;
  GpuSeen all;
  uint64_t first_partial = 0;
  uint32_t kv_head = 0;
  uint32_t chunk = 0;
  uint32_t chunks = 1;
  uint32_t counter = 0;
  uint32_t first_row = 0;
  uint32_t rows = 0;
  uint32_t row_warps = 1;  // A power of two.
  ItemUnits units;

  // Warps that share rows differ in their block of rows, the others are teams that share tokens.
  CAIRN_SIMT_DEVICE uint32_t RowShift() const { return row_warps >> 1; }  // Of 1, 2, 4.
  CAIRN_SIMT_DEVICE uint32_t Teams() const { return kBlockWarps >> RowShift(); }
  CAIRN_SIMT_DEVICE uint32_t TeamOf(uint32_t warp) const { return warp >> RowShift(); }
  CAIRN_SIMT_DEVICE uint32_t RowBlockOf(uint32_t warp) const { return warp & (row_warps - 1); }
};

CAIRN_SIMT_DEVICE GpuSeen LoadSeen(const GpuSeen* from) {
  return {simt::LoadGlobal(&from->sink_end), simt::LoadGlobal(&from->begin),
          simt::LoadGlobal(&from->end)};
}

CAIRN_SIMT_DEVICE uint32_t Least(uint32_t a, uint32_t b) { return a < b ? a : b; }
CAIRN_SIMT_DEVICE uint32_t Most(uint32_t a, uint32_t b) { return a > b ? a : b; }

// Units of chunk `index` of what any query sees. Tokens fit 32 bits, their sums need not.
CAIRN_SIMT_DEVICE ItemUnits UnitsOf(const GpuSeen& any, uint64_t index, uint32_t chunk_tokens) {
  const uint64_t begin = index * chunk_tokens;
  const uint64_t end = begin + chunk_tokens;
  ItemUnits units;
  const uint32_t sink_end = static_cast<uint32_t>(any.sink_end < end ? any.sink_end : end);
  units.sink_begin = static_cast<uint32_t>(begin / kUnitTokens);
  uint32_t sink_units_end = units.sink_begin;
  if (sink_end > begin) sink_units_end = (sink_end + kUnitTokens - 1) / kUnitTokens;
  units.sink_units = sink_units_end - units.sink_begin;
  const uint32_t from = static_cast<uint32_t>(any.begin > begin ? any.begin : begin);
  const uint32_t to = static_cast<uint32_t>(any.end < end ? any.end : end);
  units.window_begin = Most(from / kUnitTokens, sink_units_end);
  uint32_t window_end = units.window_begin;
  if (from < to) window_end = Most((to + kUnitTokens - 1) / kUnitTokens, window_end);
  units.units = units.sink_units + (window_end - units.window_begin);
  return units;
}

CAIRN_SIMT_DEVICE AttentionWork LoadWork(const AttentionParams& params, uint32_t index) {
  const auto* header = reinterpret_cast<const GpuPlanHeader*>(params.plan);
  const auto* item =
      reinterpret_cast<const GpuPlanItem*>(params.plan + simt::LoadGlobal(&header->items)) + index;
  AttentionWork work;
  work.group =
      reinterpret_cast<const GpuPlanGroup*>(params.plan + simt::LoadGlobal(&header->groups)) +
      simt::LoadGlobal(&item->group);
  work.kv_head = simt::LoadGlobal(&item->kv_head);
  work.chunk = simt::LoadGlobal(&item->chunk);
  const GpuPlanGroup* const group = work.group;
  work.queries =
      reinterpret_cast<const GpuPlanQuery*>(params.plan + simt::LoadGlobal(&header->queries)) +
      simt::LoadGlobal(&group->first_query);
  work.pages = reinterpret_cast<const uint64_t*>(params.plan + simt::LoadGlobal(&header->pages)) +
               simt::LoadGlobal(&group->first_page);
  work.any = LoadSeen(&group->any);
  work.all = LoadSeen(&group->all);
  work.first_partial = simt::LoadGlobal(&group->first_partial) +
                       work.kv_head * simt::LoadGlobal(&group->head_partials);
  work.chunks = simt::LoadGlobal(&group->chunks);
  work.counter = simt::LoadGlobal(&group->first_counter) + work.kv_head;
  work.first_row = simt::LoadGlobal(&group->first_row);
  work.rows = simt::LoadGlobal(&group->rows);
  work.row_warps = simt::LoadGlobal(&group->row_warps);
  const uint32_t sink_chunks = simt::LoadGlobal(&group->sink_chunks);
  const uint64_t index_of_chunk =
      work.chunk < sink_chunks
          ? work.chunk
          : uint64_t{simt::LoadGlobal(&group->window_chunk)} + (work.chunk - sink_chunks);
  work.units = UnitsOf(work.any, index_of_chunk, simt::LoadGlobal(&group->chunk_tokens));
  return work;
}

// Where a row of the item comes from and goes to; `row` is of the item.
struct AttentionRow {
  const GpuPlanQuery* query = nullptr;
  uint64_t head = 0;  // Of the query's heads.
};

CAIRN_SIMT_DEVICE AttentionRow RowOf(const AttentionParams& params, const AttentionWork& work,
                                     uint32_t row) {
  const uint32_t index = work.first_row + row;
  const uint32_t query = index / params.group_heads;
  const uint32_t head = index - query * params.group_heads;
  return {work.queries + query, uint64_t{work.kv_head} * params.group_heads + head};
}

// Element `dim` of a query's head, as float32.
CAIRN_SIMT_DEVICE float QueryElement(const AttentionParams& params, uint64_t query, uint64_t head,
                                     uint32_t dim) {
  const uint64_t index = head * params.key_dim + dim;
  if (params.query_dtype == KvDtype::kFloat32) {
    return simt::LoadGlobal(reinterpret_cast<const float*>(query) + index);
  }
  const uint32_t bits = simt::LoadGlobal(reinterpret_cast<const uint16_t*>(query) + index);
  return params.query_dtype == KvDtype::kBfloat16 ? simt::LowOf<simt::MatrixFloat::kBfloat16>(bits)
                                                  : simt::LowOf<simt::MatrixFloat::kFloat16>(bits);
}

CAIRN_SIMT_END
