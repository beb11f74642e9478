// Appending tokens to pages: K and V of new positions of one layer go into their slots, converted
// to the stored dtype.
//
// For scales none and one a token and head, which is computed from the row; one a head is unknown
// while its page fills. Writes nothing but the rows and scales of the tokens given; a slot that is
// negative means a token to leave out, as engines pad their batches. Not for pages that someone
// else reads at those slots.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kv_pages.h"
#include "kernels/kv_segment.h"
#include "kernels/problem.h"

namespace cairn::kernels {

// Memory to write to; otherwise as KvRegion.
struct WritableKvRegion {
  std::byte* base = nullptr;
  uint64_t bytes = 0;
};

// Rows of new tokens: token t, head h begins at data + t * token_stride + h * head_stride bytes,
// its elements one after another.
struct TokenRows {
  const std::byte* data = nullptr;
  uint64_t token_stride = 0;
  uint64_t head_stride = 0;
};

struct AppendBatch {
  KvShape shape;
  KvDtype source_dtype = KvDtype::kFloat32;  // Of the rows: a float of 16 or 32 bits.
  const WritableKvRegion* regions = nullptr;
  uint64_t region_count = 0;
  uint64_t segment_offset = 0;
  const KvPage* pages = nullptr;
  uint64_t page_count = 0;
  // Slot s is token s % page_tokens of pages[s / page_tokens]; no two tokens have the same.
  const int64_t* slots = nullptr;
  uint64_t token_count = 0;
  TokenRows keys;
  TokenRows values;  // Unused with value_dim 0.
};

// On a problem (a slot beyond the table, a page outside its region, scales one a head, ...) nothing
// was written.
[[nodiscard]] Problem AppendTokens(const AppendBatch& batch);

}  // namespace cairn::kernels
