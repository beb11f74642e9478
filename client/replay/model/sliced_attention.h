// SlicedAttention: tensor-parallel attention, each slice with its run of the KV heads and of the
// query heads that read them.
//
// Heads are computed as they are without slices, and put together in order: bits are equal. Owns no
// slice; not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "client/replay/model/head_shape.h"
#include "client/replay/model/layer_attention.h"

namespace cairn::replay {

class SlicedAttention final : public LayerAttention {
 public:
  // REQUIRES: at least one slice, and their number divides heads.kv_heads.
  SlicedAttention(const HeadShape& heads, std::vector<LayerAttention*> slices);

  // Slices are asked one after another; the first error ends it.
  absl::Status Attend(uint32_t layer, absl::Span<const AttentionRows> rows) override;

 private:
  absl::Status AttendSlice(uint32_t layer, size_t slice, absl::Span<const AttentionRows> rows);

  const HeadShape heads_;
  const std::vector<LayerAttention*> slices_;
  const HeadShape of_slice_;
};

}  // namespace cairn::replay
