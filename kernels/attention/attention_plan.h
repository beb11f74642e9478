// AttentionPlan: a validated batch cut into items that strands work off in any order.
//
// An item is one chunk of one sequence's stored tokens for a group of KV heads and up to kItemRows
// rows of each. Heads of a page lie one after another, and memory is read fastest in its own order:
// so a group has as many heads as leave enough items for all workers and state that stays in the
// second-level cache. Heads do not meet, so no result depends on how they are grouped. The chunks
// of a (sequence, head group, row group) are merged, in order, by whoever finishes the last.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/attention/tile_ops.h"
#include "kernels/attention/visibility.h"

namespace cairn::kernels {

inline constexpr uint32_t kItemBlocks = 8;
inline constexpr uint32_t kItemRows = kItemBlocks * kBlockRows;
inline constexpr uint64_t kItemStateBytesMax = 256 << 10;  // Unless one head has more.
inline constexpr uint64_t kWorkerItems = 8;       // At least, where heads can still be split.
inline constexpr uint64_t kChunkTokensMin = 512;  // A multiple of kTileTokens.
inline constexpr uint64_t kChunksMax = 128;       // Of one sequence; longer ones get longer chunks.

struct SequencePlan {
  Visibility seen;  // By any query.
  uint64_t chunk_tokens = kChunkTokensMin;
  uint64_t sink_chunks = 0;   // Chunks [0, sink_chunks), then
  uint64_t window_chunk = 0;  // from this one on.
  uint64_t chunks = 0;        // All of them; 0 where nothing is seen.
  uint64_t rows = 0;          // Of one KV head: queries times heads of a group.
  uint64_t row_groups = 0;
  uint64_t first_item = 0;
  uint64_t first_partial = 0;  // In rows of partial results: [kv_head][row][chunk].
  uint64_t first_counter = 0;  // [head group][row group]

  uint64_t ChunkBegin(uint64_t chunk) const {
    const uint64_t i = chunk < sink_chunks ? chunk : window_chunk + (chunk - sink_chunks);
    return i * chunk_tokens;
  }
};

struct AttentionItem {
  uint64_t sequence = 0;
  uint64_t head_group = 0;
  uint64_t row_group = 0;
  uint64_t chunk = 0;

  uint64_t FirstRow() const { return row_group * kItemRows; }
};

struct AttentionPlan {
  AttentionBatch batch;
  KvSegment segment;
  TileGeometry geometry;
  const TileOps* ops = nullptr;
  uint64_t tile_tokens = kTileTokens;
  uint32_t group = 1;       // Query heads of a KV head.
  uint32_t item_heads = 1;  // KV heads of an item; the last group may have fewer.
  uint64_t head_groups = 1;
  uint64_t items = 0;
  uint64_t rows_max = 0;  // Of one item.
  std::vector<SequencePlan> sequences;

  std::unique_ptr<float[]> partial_outputs;  // A row of value_dim for each partial result.
  std::unique_ptr<float[]> partial_log_sum_exps;
  uint64_t partials_capacity = 0;  // In floats of outputs.
  std::unique_ptr<std::atomic<uint32_t>[]> chunks_left;
  uint64_t counters_capacity = 0;

  // Replaces what the plan was; keeps its memory. REQUIRES: a valid batch.
  [[nodiscard]] Problem Make(const AttentionBatch& new_batch, const TileOps* new_ops,
                             uint64_t workers, uint64_t partial_bytes_max);

  // The item of `index`, and the next one.
  AttentionItem ItemAt(uint64_t index) const;
  void Advance(AttentionItem* item) const;

  const SequencePlan& PlanOf(const AttentionItem& item) const { return sequences[item.sequence]; }
  uint64_t RowsOf(const AttentionItem& item) const;
  uint32_t FirstHead(const AttentionItem& item) const {
    return static_cast<uint32_t>(item.head_group * item_heads);
  }
  uint32_t HeadsOf(const AttentionItem& item) const;
  uint64_t PartialOf(const AttentionItem& item, uint32_t kv_head, uint64_t row) const;

  // Where row `row` of a KV head goes.
  float* OutputOf(uint64_t sequence, uint32_t kv_head, uint64_t row) const;
  float* LogSumExpOf(uint64_t sequence, uint32_t kv_head, uint64_t row) const;
  const AttentionQuery& QueryOf(uint64_t sequence, uint64_t row) const;
  const void* QueryRowOf(uint64_t sequence, uint32_t kv_head, uint64_t row) const;

 private:
  void PlanSequence(const AttentionSequence& sequence, SequencePlan* plan);
  void GroupHeads(uint64_t workers);
  void WriteEmpty(uint64_t sequence) const;
};

}  // namespace cairn::kernels
