// Merging partial results of attention over disjoint sets of tokens.
//
// A partial result is an output (normalised over its own tokens) and its natural log-sum-exp. The
// result is that of all tokens together; merging is associative within rounding, and is done in the
// order given, so that equal inputs give equal bits. A part whose log-sum-exp is -infinity saw
// nothing: its output is not read. If all are, the result is zeros and -infinity.
#pragma once

#include <cstdint>

namespace cairn::kernels {

struct PartialResult {
  const float* output = nullptr;       // [rows][dim]
  const float* log_sum_exp = nullptr;  // [rows]
};

// `output` and `log_sum_exp` may be those of parts[0], no other's. Thread-safe.
void MergePartials(const PartialResult* parts, uint64_t count, uint64_t rows, uint64_t dim,
                   float* output, float* log_sum_exp);

}  // namespace cairn::kernels
