#include "client/replay/model/merged_attention.h"

#include <utility>

#include "kernels/attention/merge.h"

namespace cairn::replay {

MergedAttention::MergedAttention(const HeadShape& heads, std::vector<PartialAttention*> parts,
                                 LayerAttention* tail)
    : heads_(heads), parts_(std::move(parts)), tail_(tail), partials_(parts_.size() + 1) {}

void MergedAttention::Prepare(absl::Span<const AttentionRows> rows, Partial* partial) const {
  uint64_t count = 0;
  for (const AttentionRows& one : rows) count += one.count;
  partial->output.resize(count * heads_.QueryWidth());
  partial->log_sum_exp.resize(count * heads_.query_heads);
  partial->rows.assign(rows.begin(), rows.end());
  uint64_t first = 0;
  for (AttentionRows& one : partial->rows) {
    one.output = partial->output.data() + first * heads_.QueryWidth();
    one.log_sum_exp = partial->log_sum_exp.data() + first * heads_.query_heads;
    first += one.count;
  }
}

absl::Status MergedAttention::Attend(uint32_t layer, absl::Span<const AttentionRows> rows) {
  for (Partial& partial : partials_) Prepare(rows, &partial);
  for (size_t i = 0; i < parts_.size(); ++i) {
    absl::Status status = parts_[i]->AttendStored(layer, partials_[i].rows);
    if (!status.ok()) return status;
  }
  absl::Status status = tail_->Attend(layer, partials_.back().rows);
  if (!status.ok()) return status;
  std::vector<kernels::PartialResult> results(partials_.size());
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t i = 0; i < partials_.size(); ++i) {
      results[i] = {partials_[i].rows[r].output, partials_[i].rows[r].log_sum_exp};
    }
    kernels::MergePartials(results.data(), results.size(), rows[r].count * heads_.query_heads,
                           heads_.head_dim, rows[r].output, rows[r].log_sum_exp);
  }
  return absl::OkStatus();
}

}  // namespace cairn::replay
