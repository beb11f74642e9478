// RowSizes: how large the rows of a stream's parameters are under a namespace's layout.
//
// Plain values, from a pure function; what both sides must agree on before a byte is sent.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "cairn/v1/decode.pb.h"
#include "common/identity/payload_map.h"

namespace cairn {

struct RowSizes {
  uint32_t layers = 0;  // Of the group.
  uint32_t first_slice = 0;
  uint32_t slices = 0;
  uint32_t query_heads = 0;
  uint32_t output_dim = 0;  // Columns of an output, a head.

  // Of one row, as sent.
  uint64_t query_bytes = 0;
  uint64_t key_bytes = 0;
  uint64_t value_bytes = 0;
  // Of one token's keys and values in one layer of these slices, as stored.
  double stored_bytes = 0;

  uint64_t OutputFloats() const { return uint64_t{query_heads} * output_dim; }
  // Of one row, as answered.
  uint64_t AnswerBytes() const { return (OutputFloats() + query_heads) * sizeof(float); }
};

// INVALID_ARGUMENT naming the field that does not fit the layout, its value and what is allowed.
absl::StatusOr<RowSizes> RowSizesOf(const PayloadMap& map,
                                    const v1::AttentionParameters& parameters);

}  // namespace cairn
