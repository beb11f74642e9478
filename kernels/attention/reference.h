// The reference: attention in float64 over the dequantized stored values, one token at a time.
//
// Every other implementation is held against it. Slow, allocates, single-threaded; reads exactly
// the tokens that a query sees.
#pragma once

#include "kernels/attention/attention.h"

namespace cairn::kernels {

// Fills outputs and log-sum-exps; on a problem (ValidateAttention) writes nothing.
[[nodiscard]] Problem ReferenceAttention(const AttentionBatch& batch);

}  // namespace cairn::kernels
