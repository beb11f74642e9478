// Visibility: which stored tokens a query sees, by their index within the sequence's stored tokens.
//
// A query sees [0, sink_end) and [begin, end). Pure functions, shared by every implementation.
#pragma once

#include <cstdint>

#include "kernels/attention/attention.h"

namespace cairn::kernels {

struct Visibility {
  uint64_t sink_end = 0;
  uint64_t begin = 0;
  uint64_t end = 0;

  constexpr bool Sees(uint64_t token) const {
    return token < sink_end || (token >= begin && token < end);
  }
};

constexpr Visibility VisibilityOf(const AttentionBatch& batch, const AttentionSequence& sequence,
                                  const AttentionQuery& query) {
  const uint64_t first = sequence.first_position;
  Visibility seen;
  if (query.position < first) return seen;
  const uint64_t behind = query.position - first;  // Index of the query's own position.
  seen.end = behind < sequence.kv_tokens ? behind + 1 : sequence.kv_tokens;
  if (batch.window_tokens == 0) return seen;
  seen.begin = behind >= batch.window_tokens ? behind - batch.window_tokens + 1 : 0;
  if (seen.begin > seen.end) seen.begin = seen.end;
  seen.sink_end = batch.sink_tokens > first ? batch.sink_tokens - first : 0;
  if (seen.sink_end > seen.end) seen.sink_end = seen.end;
  return seen;
}

// The smallest sinks-and-window that holds what any of the sequence's queries sees.
constexpr Visibility VisibilityOfAll(const AttentionBatch& batch,
                                     const AttentionSequence& sequence) {
  Visibility all;
  all.begin = sequence.kv_tokens;
  for (uint64_t i = 0; i < sequence.query_count; ++i) {
    const Visibility one = VisibilityOf(batch, sequence, sequence.queries[i]);
    if (one.end > all.end) all.end = one.end;
    if (one.sink_end > all.sink_end) all.sink_end = one.sink_end;
    if (one.begin < one.end && one.begin < all.begin) all.begin = one.begin;
  }
  if (all.begin > all.end) all.begin = all.end;
  return all;
}

}  // namespace cairn::kernels
