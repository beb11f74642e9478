#include <cmath>

#include "kernels/attention/attention.h"
#include "kernels/attention/visibility.h"

namespace cairn::kernels {
namespace {

std::string Number(uint64_t value) { return std::to_string(value); }

Problem ValidateHeads(const AttentionBatch& batch) {
  const KvShape& shape = batch.shape;
  if (batch.query_heads < 1 || batch.query_heads > kQueryHeadsMax ||
      batch.query_heads % shape.kv_heads != 0) {
    return "query_heads " + Number(batch.query_heads) + " is not a multiple of kv_heads " +
           Number(shape.kv_heads) + " within 1 to " + Number(kQueryHeadsMax);
  }
  if (shape.value_dim != 0 && batch.latent_value_dim != 0) {
    return "latent_value_dim " + Number(batch.latent_value_dim) + " goes with value_dim 0 only";
  }
  if (shape.value_dim == 0 &&
      (batch.latent_value_dim < 2 || batch.latent_value_dim > shape.key_dim ||
       batch.latent_value_dim % 2 != 0)) {
    return "latent_value_dim " + Number(batch.latent_value_dim) +
           " is not even and within 2 to key_dim " + Number(shape.key_dim);
  }
  return "";
}

Problem ValidateOptions(const AttentionBatch& batch) {
  if (!IsWideFloat(batch.query_dtype)) {
    return std::string("query_dtype ") + NameOf(batch.query_dtype) +
           " is not float16, bfloat16 or float32";
  }
  if (!std::isfinite(batch.softmax_scale)) return "softmax_scale is not finite";
  if (!std::isfinite(batch.logit_soft_cap) || batch.logit_soft_cap < 0) {
    return "logit_soft_cap " + std::to_string(batch.logit_soft_cap) + " is not 0 or above";
  }
  if (batch.window_tokens == 0 && batch.sink_tokens != 0) {
    return "sink_tokens " + Number(batch.sink_tokens) + " goes with a window only";
  }
  if (batch.window_tokens > kKvTokensMax || batch.sink_tokens > kKvTokensMax) {
    return "window_tokens or sink_tokens above " + Number(kKvTokensMax);
  }
  return "";
}

Problem ValidateRegions(const KvRegions& regions) {
  if (regions.count > 0 && regions.regions == nullptr) return "regions is null";
  for (uint64_t i = 0; i < regions.count; ++i) {
    const KvRegion& region = regions.regions[i];
    const uint64_t address = reinterpret_cast<uintptr_t>(region.base);
    if (address == 0 || address % kTileAlignBytes != 0 || address + region.bytes < address) {
      return "region " + Number(i) + " is null, not aligned to 64 bytes or wraps around";
    }
  }
  if (regions.segment_offset % kTileAlignBytes != 0) {
    return "segment_offset " + Number(regions.segment_offset) + " is not a multiple of 64";
  }
  return "";
}

Problem ValidateQueries(const AttentionBatch& batch, const AttentionSequence& sequence) {
  if (sequence.query_count > 0 && sequence.queries == nullptr) return "queries is null";
  const uint64_t group = batch.query_heads / batch.shape.kv_heads;
  if (sequence.query_count > kQueriesPerKvHeadMax / group) {
    return Number(sequence.query_count) + " queries of " + Number(group) + " heads are more than " +
           Number(kQueriesPerKvHeadMax) + " a KV head";
  }
  for (uint64_t i = 0; i < sequence.query_count; ++i) {
    const AttentionQuery& query = sequence.queries[i];
    if (query.query == nullptr || query.output == nullptr || query.log_sum_exp == nullptr) {
      return "query " + Number(i) + ": a pointer is null";
    }
    if (query.position > kKvTokensMax) {
      return "query " + Number(i) + ": position " + Number(query.position) + " is above " +
             Number(kKvTokensMax);
    }
  }
  return "";
}

Problem ValidatePages(const AttentionBatch& batch, const AttentionSequence& sequence,
                      uint64_t segment_bytes, uint64_t token_begin, uint64_t token_end) {
  const uint64_t page_tokens = batch.shape.page_tokens;
  const uint64_t page_end = (token_end + page_tokens - 1) / page_tokens;
  for (uint64_t i = token_begin / page_tokens; i < page_end && token_begin < token_end; ++i) {
    const KvPage& page = sequence.pages[i];
    if (!IsInside(batch.regions, page, segment_bytes)) {
      return "page " + Number(i) + " (region " + Number(page.region) + ", offset " +
             Number(page.offset) + ") is not aligned or its segment of " + Number(segment_bytes) +
             " bytes is not inside a region";
    }
  }
  return "";
}

Problem ValidateSequence(const AttentionBatch& batch, const AttentionSequence& sequence,
                         uint64_t segment_bytes) {
  if (sequence.kv_tokens > kKvTokensMax || sequence.first_position > kKvTokensMax) {
    return "kv_tokens " + Number(sequence.kv_tokens) + " or first_position " +
           Number(sequence.first_position) + " is above " + Number(kKvTokensMax);
  }
  const uint64_t pages =
      (sequence.kv_tokens + batch.shape.page_tokens - 1) / batch.shape.page_tokens;
  if (sequence.page_count < pages || (pages > 0 && sequence.pages == nullptr)) {
    return "kv_tokens " + Number(sequence.kv_tokens) + " need " + Number(pages) +
           " pages, the table has " + Number(sequence.page_count);
  }
  Problem problem = ValidateQueries(batch, sequence);
  if (!problem.empty()) return problem;
  const Visibility seen = VisibilityOfAll(batch, sequence);
  problem = ValidatePages(batch, sequence, segment_bytes, 0, seen.sink_end);
  if (!problem.empty()) return problem;
  return ValidatePages(batch, sequence, segment_bytes, seen.begin, seen.end);
}

}  // namespace

Problem ValidateAttention(const AttentionBatch& batch) {
  Problem problem = ValidateShape(batch.shape);
  if (problem.empty()) problem = ValidateHeads(batch);
  if (problem.empty()) problem = ValidateOptions(batch);
  if (problem.empty()) problem = ValidateRegions(batch.regions);
  if (!problem.empty()) return problem;
  if (batch.sequence_count > 0 && batch.sequences == nullptr) return "sequences is null";
  const uint64_t segment_bytes = SegmentOf(batch.shape).bytes;
  for (uint64_t i = 0; i < batch.sequence_count; ++i) {
    problem = ValidateSequence(batch, batch.sequences[i], segment_bytes);
    if (!problem.empty()) return "sequence " + Number(i) + ": " + problem;
  }
  return "";
}

}  // namespace cairn::kernels
