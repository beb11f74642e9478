// AttendShape: what one call of attention needs beside stored bytes, held against a layout.
//
// Made once for a stream or a call; immutable, so thread-safe. Borrows the PayloadMap, which lives
// as long as the store.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "common/identity/payload_map.h"
#include "kernels/kv_segment.h"

namespace cairn::node {

// As a caller says them: AttentionParameters of the wire contract.
struct AttendParameters {
  uint32_t group = 0;
  uint32_t first_slice = 0;
  uint32_t slices = 0;  // 0: all from the first.
  uint32_t query_heads = 0;
  uint32_t row_dtype = 0;
  float softmax_scale = 0;
  float logit_soft_cap = 0;
  uint64_t window_tokens = 0;
  uint64_t sink_tokens = 0;
  uint32_t latent_value_dim = 0;
};

// Of one row's output, over all its heads: what is merged of a row at once is bounded by it.
inline constexpr uint64_t kOutputElementsMax = 1 << 16;

struct AttendShape {
  const PayloadMap* map = nullptr;
  uint32_t group = 0;
  uint32_t first_slice = 0;
  uint32_t slices = 0;
  uint32_t layers = 0;
  uint32_t query_heads = 0;  // Of all slices together.
  uint32_t slice_query_heads = 0;
  uint32_t output_dim = 0;
  kernels::KvShape kv;  // Of one slice.
  kernels::KvDtype row_dtype = kernels::KvDtype::kFloat32;
  float softmax_scale = 1;
  float logit_soft_cap = 0;
  uint64_t window_tokens = 0;
  uint64_t sink_tokens = 0;
  uint32_t latent_value_dim = 0;

  // Bytes of a row of what is sent, over all slices.
  uint64_t QueryRowBytes() const { return query_heads * kernels::RowBytes(row_dtype, kv.key_dim); }
  uint64_t KeyRowBytes() const {
    return uint64_t{slices} * kv.kv_heads * kernels::RowBytes(row_dtype, kv.key_dim);
  }
  uint64_t ValueRowBytes() const {
    return uint64_t{slices} * kv.kv_heads * kernels::RowBytes(row_dtype, kv.value_dim);
  }
  // And of what is answered.
  uint64_t OutputRowElements() const { return uint64_t{query_heads} * output_dim; }
  uint64_t OutputRowBytes() const { return OutputRowElements() * sizeof(float); }
  uint64_t LogSumExpRowBytes() const { return uint64_t{query_heads} * sizeof(float); }

  // Of a layer's segment of the i-th of these slices within a block's slot. REQUIRES: i < slices,
  // layer < layers.
  uint64_t SegmentOffset(uint32_t i, uint32_t layer) const;
  // Stored bytes that one token has in one layer of all these slices.
  uint64_t TokenBytes() const;

  // Whether items of both could be of one batch, whatever their layers.
  friend bool SameAttention(const AttendShape& a, const AttendShape& b);
};

// INVALID_ARGUMENT names the parameter, its value and what is allowed; FAILED_PRECONDITION: a group
// that there is no attention over, as its elements are opaque or have sizes that kernels lack.
absl::StatusOr<AttendShape> MakeAttendShape(const PayloadMap& map,
                                            const AttendParameters& parameters);

// INVALID_ARGUMENT when it is not one of the group's.
absl::Status CheckLayer(const AttendShape& shape, uint32_t layer);

// Whether all `count` elements are finite. REQUIRES: a float of 16 or 32 bits.
bool AllFinite(kernels::KvDtype dtype, const void* elements, uint64_t count);

}  // namespace cairn::node
