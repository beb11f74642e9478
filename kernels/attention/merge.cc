#include "kernels/attention/merge.h"

#include <algorithm>
#include <cmath>

namespace cairn::kernels {
namespace {

// Parts whose weights are at hand at once, and columns.
constexpr uint64_t kParts = 32;
constexpr uint64_t kColumns = 16;

// Columns [begin, begin + columns) of `output` = those of it, if it has any yet, and of `count`
// parts by their weights. Reads all before it writes, so that a part may be the output.
inline void AddColumns(const float* const* parts, const float* weights, uint64_t count,
                       uint64_t begin, uint64_t columns, bool is_first, float* output) {
  float sums[kColumns] = {};
  if (!is_first) std::copy_n(output + begin, columns, sums);
  for (uint64_t i = 0; i < count; ++i) {
    const float* const from = parts[i] + begin;
    for (uint64_t d = 0; d < columns; ++d) sums[d] += weights[i] * from[d];
  }
  std::copy_n(sums, columns, output + begin);
}

void AddParts(const float* const* parts, const float* weights, uint64_t count, uint64_t dim,
              bool is_first, float* output) {
  uint64_t d = 0;
  // Of a constant width, which the compiler makes vectors of.
  for (; d + kColumns <= dim; d += kColumns) {
    AddColumns(parts, weights, count, d, kColumns, is_first, output);
  }
  if (d < dim) AddColumns(parts, weights, count, d, dim - d, is_first, output);
}

void MergeRow(const PartialResult* parts, uint64_t count, uint64_t row, uint64_t dim, float* output,
              float* log_sum_exp) {
  float most = -INFINITY;
  for (uint64_t i = 0; i < count; ++i) most = std::max(most, parts[i].log_sum_exp[row]);
  if (most == -INFINITY) {
    std::fill_n(output, dim, 0.0f);
    *log_sum_exp = -INFINITY;
    return;
  }
  float sum = 0;
  for (uint64_t i = 0; i < count; ++i) sum += std::exp(parts[i].log_sum_exp[row] - most);
  const float factor = 1.0f / sum;
  bool is_first = true;
  for (uint64_t i = 0; i < count;) {
    const float* outputs[kParts];
    float weights[kParts];
    uint64_t at_hand = 0;
    for (; i < count && at_hand < kParts; ++i) {
      const float part = parts[i].log_sum_exp[row];
      if (part == -INFINITY) continue;
      outputs[at_hand] = parts[i].output + row * dim;
      weights[at_hand++] = std::exp(part - most) * factor;
    }
    AddParts(outputs, weights, at_hand, dim, is_first, output);
    is_first = false;
  }
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
