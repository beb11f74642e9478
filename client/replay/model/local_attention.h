// LocalAttention: sequences whose KV lies in pages of this process, in the form that the cache
// stores.
//
// A page is one block's part: the segments of all layers of one slice, so that a full block's bytes
// can be put into the cache as they are, and a block from the cache becomes a page as it is. One
// query is attended at a time, over KV that ends at its position: its bits depend on the sequence
// alone, not on batches or prefill chunks. Forks share pages; a shared page is copied when written.
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/replay/model/layer_attention.h"
#include "client/replay/model/page_pool.h"
#include "kernels/attention/attention_runner.h"
#include "kernels/cpu_path.h"
#include "kernels/kv_segment.h"
#include "kernels/worker_pool.h"

namespace cairn::replay {

struct LocalAttentionOptions {
  kernels::KvShape shape;  // Of one slice (PageShape); scales none, or one a token and head.
  uint32_t layers = 0;
  uint32_t query_heads = 0;  // That read this slice.
  float softmax_scale = 1;
  kernels::CpuPath path = kernels::CpuPath::kBaseline;  // Equal bits on equal processors.
  uint64_t pages_max = 1 << 14;
};

// Of all calls: NOT_FOUND for a sequence that is not open, INVALID_ARGUMENT for what does not fit
// it, RESOURCE_EXHAUSTED when pages are out; they name sequence and numbers.
class LocalAttention final : public LayerAttention, public PartialAttention {
 public:
  static absl::StatusOr<std::unique_ptr<LocalAttention>> Make(const LocalAttentionOptions& options);

  LocalAttention(const LocalAttention&) = delete;
  LocalAttention& operator=(const LocalAttention&) = delete;

  // An empty sequence of the caller's number, whose first token is at `first_position`: what lies
  // before is elsewhere. ALREADY_EXISTS for a number in use.
  absl::Status Open(uint64_t sequence, uint64_t first_position = 0);
  absl::Status Close(uint64_t sequence);
  // `fork` is a new number. REQUIRES: no step is half done.
  absl::Status Fork(uint64_t sequence, uint64_t fork);
  // Forgets tokens at `end_position` and after, also those that only some layers have.
  absl::Status Truncate(uint64_t sequence, uint64_t end_position);
  // Behind the last token that all layers have.
  absl::StatusOr<uint64_t> EndPosition(uint64_t sequence) const;

  // Bytes of block `index` (from the sequence's first), all layers or one, valid until the sequence
  // changes. The block is full.
  absl::StatusOr<absl::Span<const std::byte>> Part(uint64_t sequence, uint64_t index) const;
  absl::StatusOr<absl::Span<const std::byte>> Segment(uint64_t sequence, uint64_t index,
                                                      uint32_t layer) const;
  // A full block from elsewhere; the sequence ends at a block's edge.
  absl::Status AppendPart(uint64_t sequence, absl::Span<const std::byte> part);

  absl::Status Attend(uint32_t layer, absl::Span<const AttentionRows> rows) override;
  absl::Status AttendStored(uint32_t layer, absl::Span<const AttentionRows> rows) override;

  uint64_t pages_in_use() const { return pool_.pages_in_use(); }

 private:
  struct Sequence {
    uint64_t first_position = 0;
    std::vector<uint64_t> tokens;        // Of each layer.
    std::vector<kernels::KvPage> pages;  // Region numbers are the pool's pages.
  };

  explicit LocalAttention(const LocalAttentionOptions& options);

  absl::StatusOr<Sequence*> Find(uint64_t sequence);
  absl::StatusOr<const Sequence*> Find(uint64_t sequence) const;
  absl::Status AddPage(uint64_t number, Sequence* sequence);
  // So that tokens [begin, end) can be written: pages are there, and nobody else's.
  absl::Status MakeRoom(uint64_t number, uint64_t begin, uint64_t end, Sequence* sequence);
  absl::Status Append(uint32_t layer, const AttentionRows& rows);

  const LocalAttentionOptions options_;
  const kernels::KvSegment segment_;
  PagePool pool_;
  kernels::InlinePool threads_;
  kernels::AttentionRunner runner_;
  absl::flat_hash_map<uint64_t, Sequence> sequences_;
};

}  // namespace cairn::replay
