// MergedAttention: attention over a prefix that others hold, merged with a tail of one's own.
//
// New rows go to the tail. All parts know a sequence by the same number, and hold disjoint tokens
// of it. Partial results are merged in float32 in the order of the parts, the tail last. Owns none
// of them; not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "client/replay/model/head_shape.h"
#include "client/replay/model/layer_attention.h"

namespace cairn::replay {

class MergedAttention final : public LayerAttention {
 public:
  MergedAttention(const HeadShape& heads, std::vector<PartialAttention*> parts,
                  LayerAttention* tail);

  // The first error of a part, in their order; the tail is asked last, so that a part's failure
  // leaves it as it was.
  absl::Status Attend(uint32_t layer, absl::Span<const AttentionRows> rows) override;

 private:
  // Of one part for all rows of a call.
  struct Partial {
    std::vector<float> output;
    std::vector<float> log_sum_exp;
    std::vector<AttentionRows> rows;
  };

  void Prepare(absl::Span<const AttentionRows> rows, Partial* partial) const;

  const HeadShape heads_;
  const std::vector<PartialAttention*> parts_;
  LayerAttention* const tail_;
  std::vector<Partial> partials_;  // The tail's last.
};

}  // namespace cairn::replay
