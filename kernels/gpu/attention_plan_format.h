// What a plan of attention looks like to the device: a header, then tables.
//
// An item is one chunk of one sequence's stored tokens for one KV head and one row group: up to
// kRowGroupRows rows (query * heads of a group + head), whose KV is read once. Items of the same
// tokens follow each other, so that row groups find them in the second-level cache.
#pragma once

#include <cstdint>

namespace cairn::kernels {

inline constexpr uint32_t kUnitTokens = 16;  // What a warp works on: the height of a matrix.
inline constexpr uint32_t kBlockWarps = 4;
inline constexpr uint32_t kWarpRows = 8;  // The width of a matrix.
inline constexpr uint32_t kRowGroupRows = kBlockWarps * kWarpRows;

// Offsets are bytes from the header.
struct alignas(16) GpuPlanHeader {
  uint64_t items = 0;    // Of GpuPlanItem.
  uint64_t groups = 0;   // Of GpuPlanGroup.
  uint64_t queries = 0;  // Of GpuPlanQuery.
  uint64_t pages = 0;    // Addresses of slots, uint64_t; 0: seen by no query.
  uint32_t item_count = 0;
  uint32_t reserved = 0;
};

struct alignas(16) GpuPlanItem {
  uint32_t group = 0;
  uint32_t kv_head = 0;
  uint32_t chunk = 0;
  uint32_t reserved = 0;
};

// Stored tokens [0, sink_end) and [begin, end).
struct GpuSeen {
  uint32_t sink_end = 0;
  uint32_t begin = 0;
  uint32_t end = 0;
};

struct alignas(16) GpuPlanGroup {
  uint64_t first_page = 0;     // Index of the sequence's first page.
  uint64_t first_partial = 0;  // Of KV head 0: [row][chunk].
  uint64_t head_partials = 0;  // From one KV head to the next.
  uint32_t first_query = 0;    // Index of the sequence's first query.
  uint32_t first_row = 0;
  uint32_t rows = 0;
  uint32_t row_warps = 1;  // Warps that share rows, each with kWarpRows; the others share tokens.
  uint32_t first_counter = 0;  // Of KV head 0.
  uint32_t chunk_tokens = 0;
  uint32_t sink_chunks = 0;   // Chunks [0, sink_chunks), then
  uint32_t window_chunk = 0;  // from this one on.
  uint32_t chunks = 1;
  GpuSeen any;  // By any query of the sequence.
  GpuSeen all;  // By every row of the group.
};

struct alignas(16) GpuPlanQuery {
  uint64_t query = 0;
  uint64_t output = 0;
  uint64_t log_sum_exp = 0;
  GpuSeen seen;
  uint32_t reserved = 0;
};

}  // namespace cairn::kernels
