// SlotRun: consecutive blocks of one prompt as a kernel sees them.
//
// A plain value that owns nothing: valid until the sequence or the pins behind it change.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace cairn::node {

struct SlotRun {
  // Where each block's bytes begin, as its namespace's PayloadMap says; null: given back.
  absl::Span<const std::byte* const> slots;
  uint64_t first_position = 0;  // Of the first slot's first token.
  uint64_t tokens = 0;          // Stored, from there, of one layer and slice.
};

}  // namespace cairn::node
