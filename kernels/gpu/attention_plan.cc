#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/attention/visibility.h"
#include "kernels/gpu/attention.h"
#include "kernels/gpu/attention_plan_format.h"

namespace cairn::kernels {
namespace {

uint64_t DivideUp(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

GpuSeen Narrow(const Visibility& seen) {
  return {static_cast<uint32_t>(seen.sink_end), static_cast<uint32_t>(seen.begin),
          static_cast<uint32_t>(seen.end)};
}

uint32_t RowGroupRowsOf(const AttentionBatch& batch) {
  const GpuAttentionPath path = GpuAttentionPathOf(batch.shape, batch.latent_value_dim);
  return path == GpuAttentionPath::kPlain ? kWarpRows : kRowGroupRows;
}

// The chunks of one sequence; a sequence of which nothing is seen has one that is empty.
struct Chunks {
  Visibility seen;
  uint64_t tokens = kGpuChunkTokensMin;
  uint64_t sink_chunks = 0;
  uint64_t window_chunk = 0;
  uint64_t count = 0;

  Chunks(const AttentionBatch& batch, const AttentionSequence& sequence)
      : seen(VisibilityOfAll(batch, sequence)) {
    while (DivideUp(sequence.kv_tokens, tokens) > kGpuChunksMax) tokens *= 2;
    sink_chunks = DivideUp(seen.sink_end, tokens);
    window_chunk = std::max(sink_chunks, seen.begin / tokens);
    const uint64_t end = DivideUp(seen.end, tokens);
    const bool has_window = seen.begin < seen.end && window_chunk < end;
    count = std::max<uint64_t>(sink_chunks + (has_window ? end - window_chunk : 0), 1);
  }
};

// How many of everything, in 64 bits.
struct Counts {
  uint64_t items = 0;
  uint64_t groups = 0;
  uint64_t queries = 0;
  uint64_t pages = 0;
  uint64_t counters = 0;
  uint64_t partials = 0;
};

uint64_t PagesOf(const AttentionBatch& batch, const AttentionSequence& sequence) {
  return DivideUp(sequence.kv_tokens, batch.shape.page_tokens);
}

void Count(const AttentionBatch& batch, const AttentionSequence& sequence, Counts* counts) {
  if (sequence.query_count == 0) return;
  const Chunks chunks(batch, sequence);
  const uint64_t kv_heads = batch.shape.kv_heads;
  const uint64_t rows = sequence.query_count * (batch.query_heads / kv_heads);
  const uint64_t groups = DivideUp(rows, RowGroupRowsOf(batch));
  counts->groups += groups;
  counts->items += groups * kv_heads * chunks.count;
  counts->queries += sequence.query_count;
  counts->pages += PagesOf(batch, sequence);
  if (chunks.count == 1) return;
  counts->counters += groups * kv_heads;
  counts->partials += rows * kv_heads * chunks.count;
}

GpuPlanHeader Layout(const Counts& counts, uint64_t* bytes) {
  GpuPlanHeader header;
  header.items = sizeof(GpuPlanHeader);
  header.groups = header.items + counts.items * sizeof(GpuPlanItem);
  header.queries = header.groups + counts.groups * sizeof(GpuPlanGroup);
  header.pages = header.queries + counts.queries * sizeof(GpuPlanQuery);
  header.item_count = static_cast<uint32_t>(counts.items);
  *bytes = DivideUp(header.pages + counts.pages * sizeof(uint64_t), 16) * 16;
  return header;
}

Problem CountAll(const AttentionBatch& batch, Counts* counts) {
  Problem problem = ValidateAttention(batch);
  if (!problem.empty()) return problem;
  for (uint64_t i = 0; i < batch.sequence_count; ++i) {
    const AttentionSequence& sequence = batch.sequences[i];
    if (sequence.kv_tokens > kGpuKvTokensMax) {
      return "sequence " + std::to_string(i) + ": kv_tokens " + std::to_string(sequence.kv_tokens) +
             " is above " + std::to_string(kGpuKvTokensMax) + " for a device";
    }
    Count(batch, sequence, counts);
    if (counts->items > kGpuPlanItemsMax || counts->queries > kGpuPlanItemsMax) {
      return "sequence " + std::to_string(i) + " makes more than " +
             std::to_string(kGpuPlanItemsMax) + " items: give fewer sequences at once";
    }
  }
  return "";
}

// Fills the tables of one plan, a sequence at a time.
class Writer {
 public:
  Writer(const AttentionBatch& batch, const GpuPlanHeader& header, std::byte* plan)
      : batch_(batch),
        items_(reinterpret_cast<GpuPlanItem*>(plan + header.items)),
        groups_(reinterpret_cast<GpuPlanGroup*>(plan + header.groups)),
        queries_(reinterpret_cast<GpuPlanQuery*>(plan + header.queries)),
        pages_(reinterpret_cast<uint64_t*>(plan + header.pages)) {}

  void Write(const AttentionSequence& sequence) {
    if (sequence.query_count == 0) return;
    const Chunks chunks(batch_, sequence);
    const uint64_t first_group = at_.groups;
    WriteGroups(sequence, chunks);
    WriteItems(first_group, chunks);
    WriteQueries(sequence);
    WritePages(sequence, chunks.seen);
    Count(batch_, sequence, &at_);
  }

 private:
  void WriteGroups(const AttentionSequence& sequence, const Chunks& chunks) {
    const uint64_t heads = batch_.query_heads / batch_.shape.kv_heads;
    const uint64_t rows = sequence.query_count * heads;
    const uint64_t group_rows = RowGroupRowsOf(batch_);
    const uint64_t groups = DivideUp(rows, group_rows);
    for (uint64_t i = 0; i < groups; ++i) {
      GpuPlanGroup group;
      group.first_page = at_.pages;
      group.first_row = static_cast<uint32_t>(i * group_rows);
      group.rows = static_cast<uint32_t>(std::min(group_rows, rows - group.first_row));
      group.first_partial = at_.partials + group.first_row * chunks.count;
      group.head_partials = rows * chunks.count;
      group.first_query = static_cast<uint32_t>(at_.queries);
      while (group.row_warps * kWarpRows < group.rows) group.row_warps *= 2;
      group.first_counter = static_cast<uint32_t>(at_.counters + i * batch_.shape.kv_heads);
      group.chunk_tokens = static_cast<uint32_t>(chunks.tokens);
      group.sink_chunks = static_cast<uint32_t>(chunks.sink_chunks);
      group.window_chunk = static_cast<uint32_t>(chunks.window_chunk);
      group.chunks = static_cast<uint32_t>(chunks.count);
      group.any = Narrow(chunks.seen);
      group.all =
          SeenByAll(sequence, group.first_row / heads, (group.first_row + group.rows - 1) / heads);
      groups_[at_.groups + i] = group;
    }
  }

  GpuSeen SeenByAll(const AttentionSequence& sequence, uint64_t first, uint64_t last) const {
    Visibility all{sequence.kv_tokens, 0, sequence.kv_tokens};
    for (uint64_t q = first; q <= last; ++q) {
      const Visibility one = VisibilityOf(batch_, sequence, sequence.queries[q]);
      all.sink_end = std::min(all.sink_end, one.sink_end);
      all.begin = std::max(all.begin, one.begin);
      all.end = std::min(all.end, one.end);
    }
    return Narrow(all);
  }

  void WriteItems(uint64_t first_group, const Chunks& chunks) {
    const uint64_t groups = DivideUp(RowsOf(first_group), RowGroupRowsOf(batch_));
    GpuPlanItem* item = items_ + at_.items;
    for (uint32_t head = 0; head < batch_.shape.kv_heads; ++head) {
      for (uint64_t chunk = 0; chunk < chunks.count; ++chunk) {
        for (uint64_t group = 0; group < groups; ++group) {
          *item++ = {static_cast<uint32_t>(first_group + group), head, static_cast<uint32_t>(chunk),
                     0};
        }
      }
    }
  }

  uint64_t RowsOf(uint64_t group) const {
    return groups_[group].head_partials / groups_[group].chunks;
  }

  void WriteQueries(const AttentionSequence& sequence) {
    for (uint64_t q = 0; q < sequence.query_count; ++q) {
      const AttentionQuery& from = sequence.queries[q];
      GpuPlanQuery query;
      query.query = reinterpret_cast<uint64_t>(from.query);
      query.output = reinterpret_cast<uint64_t>(from.output);
      query.log_sum_exp = reinterpret_cast<uint64_t>(from.log_sum_exp);
      query.seen = Narrow(VisibilityOf(batch_, sequence, from));
      queries_[at_.queries + q] = query;
    }
  }

  // Tables may hold anything where nobody looks.
  void WritePages(const AttentionSequence& sequence, const Visibility& seen) {
    const uint64_t page_tokens = batch_.shape.page_tokens;
    for (uint64_t p = 0; p < PagesOf(batch_, sequence); ++p) {
      const uint64_t begin = p * page_tokens;
      const bool is_seen =
          begin < seen.sink_end || (begin < seen.end && begin + page_tokens > seen.begin);
      const KvPage& page = sequence.pages[p];
      pages_[at_.pages + p] =
          is_seen
              ? reinterpret_cast<uint64_t>(batch_.regions.regions[page.region].base) + page.offset
              : 0;
    }
  }

  const AttentionBatch& batch_;
  GpuPlanItem* const items_;
  GpuPlanGroup* const groups_;
  GpuPlanQuery* const queries_;
  uint64_t* const pages_;
  Counts at_;
};

}  // namespace

GpuAttention GpuAttentionOf(const AttentionBatch& batch) {
  GpuAttention attention;
  attention.shape = batch.shape;
  attention.query_heads = batch.query_heads;
  attention.latent_value_dim = batch.latent_value_dim;
  attention.query_dtype = batch.query_dtype;
  attention.softmax_scale = batch.softmax_scale;
  attention.logit_soft_cap = batch.logit_soft_cap;
  attention.segment_offset = batch.regions.segment_offset;
  return attention;
}

Problem GpuAttentionSizesOf(const AttentionBatch& batch, GpuAttentionSizes* sizes) {
  Counts counts;
  Problem problem = CountAll(batch, &counts);
  if (!problem.empty()) return problem;
  sizes->items = counts.items;
  Layout(counts, &sizes->plan_bytes);
  sizes->counter_bytes = counts.counters * sizeof(uint32_t);
  sizes->partial_bytes = counts.partials * (OutputDim(batch) + uint64_t{1}) * sizeof(float);
  return "";
}

Problem PlanGpuAttention(const AttentionBatch& batch, std::byte* plan, uint64_t plan_bytes) {
  Counts counts;
  Problem problem = CountAll(batch, &counts);
  if (!problem.empty()) return problem;
  uint64_t bytes = 0;
  const GpuPlanHeader header = Layout(counts, &bytes);
  if (plan == nullptr || plan_bytes < bytes) {
    return "a plan of " + std::to_string(bytes) + " bytes does not fit into " +
           std::to_string(plan_bytes);
  }
  std::memset(plan, 0, bytes);
  std::memcpy(plan, &header, sizeof(header));
  Writer writer(batch, header, plan);
  for (uint64_t i = 0; i < batch.sequence_count; ++i) writer.Write(batch.sequences[i]);
  return "";
}

GpuAttentionPath GpuAttentionPathOf(const KvShape& shape, uint32_t latent_value_dim) {
  const bool is_latent = shape.value_dim == 0;
  const uint64_t key_bytes = RowBytes(shape.dtype, shape.key_dim);
  const uint64_t value_bytes = RowBytes(shape.dtype, shape.value_dim);
  if (shape.dtype == KvDtype::kFloat32 || key_bytes % 16 != 0 || value_bytes % 16 != 0) {
    return GpuAttentionPath::kPlain;
  }
  const uint32_t most = std::max(shape.key_dim, shape.value_dim);
  if (is_latent) {
    const bool fits = shape.key_dim <= 576 && latent_value_dim <= 512;
    return fits ? GpuAttentionPath::kLatent : GpuAttentionPath::kPlain;
  }
  if (most <= 128) return GpuAttentionPath::kHead128;
  return most <= 256 ? GpuAttentionPath::kHead256 : GpuAttentionPath::kPlain;
}

}  // namespace cairn::kernels
