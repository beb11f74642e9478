#include "kernels/attention/merge.h"

#include <algorithm>
#include <cmath>

namespace cairn::kernels {
namespace {

void MergeRow(const PartialResult* parts, uint64_t count, uint64_t row, uint64_t dim, float* output,
              float* log_sum_exp) {
  float most = -INFINITY;
  for (uint64_t i = 0; i < count; ++i) most = std::max(most, parts[i].log_sum_exp[row]);
  float sum = 0;
  bool is_first = true;
  for (uint64_t i = 0; i < count; ++i) {
    const float part = parts[i].log_sum_exp[row];
    if (part == -INFINITY) continue;
    const float weight = std::exp(part - most);
    const float* from = parts[i].output + row * dim;
    if (is_first) {
      for (uint64_t d = 0; d < dim; ++d) output[d] = weight * from[d];
    } else {
      for (uint64_t d = 0; d < dim; ++d) output[d] += weight * from[d];
    }
    sum += weight;
    is_first = false;
  }
  if (is_first) {
    std::fill_n(output, dim, 0.0f);
    *log_sum_exp = -INFINITY;
    return;
  }
  const float factor = 1.0f / sum;
  for (uint64_t d = 0; d < dim; ++d) output[d] *= factor;
  *log_sum_exp = most + std::log(sum);
}

}  // namespace

void MergePartials(const PartialResult* parts, uint64_t count, uint64_t rows, uint64_t dim,
                   float* output, float* log_sum_exp) {
  for (uint64_t row = 0; row < rows; ++row) {
    MergeRow(parts, count, row, dim, output + row * dim, log_sum_exp + row);
  }
}

}  // namespace cairn::kernels
