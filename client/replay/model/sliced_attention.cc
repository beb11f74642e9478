#include "client/replay/model/sliced_attention.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace cairn::replay {
namespace {

HeadShape Divide(const HeadShape& heads, size_t slices) {
  CAIRN_CHECK(slices > 0 && heads.kv_heads % slices == 0);
  const auto count = static_cast<uint32_t>(slices);
  return {heads.query_heads / count, heads.kv_heads / count, heads.head_dim};
}

// Of each row of `width` numbers, those from `begin` on.
std::vector<float> Columns(const float* rows, uint64_t count, uint64_t width, uint64_t begin,
                           uint64_t columns) {
  std::vector<float> out(count * columns);
  for (uint64_t r = 0; r < count; ++r) {
    std::copy_n(rows + r * width + begin, columns, out.data() + r * columns);
  }
  return out;
}

void PutColumns(const std::vector<float>& from, uint64_t count, uint64_t width, uint64_t begin,
                uint64_t columns, float* rows) {
  for (uint64_t r = 0; r < count; ++r) {
    std::copy_n(from.data() + r * columns, columns, rows + r * width + begin);
  }
}

}  // namespace

SlicedAttention::SlicedAttention(const HeadShape& heads, std::vector<LayerAttention*> slices)
    : heads_(heads), slices_(std::move(slices)), of_slice_(Divide(heads, slices_.size())) {}

absl::Status SlicedAttention::Attend(uint32_t layer, absl::Span<const AttentionRows> rows) {
  for (size_t slice = 0; slice < slices_.size(); ++slice) {
    absl::Status status = AttendSlice(layer, slice, rows);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status SlicedAttention::AttendSlice(uint32_t layer, size_t slice,
                                          absl::Span<const AttentionRows> rows) {
  const uint64_t query_width = of_slice_.QueryWidth();
  const uint64_t key_width = of_slice_.KeyWidth();
  const uint64_t first_query_head = slice * of_slice_.query_heads;
  const uint64_t first_query = slice * query_width;
  struct Piece {
    std::vector<float> queries, keys, values, output, log_sum_exp;
  };
  std::vector<Piece> pieces;
  std::vector<AttentionRows> asked;
  pieces.reserve(rows.size());  // `asked` points into it.
  for (const AttentionRows& one : rows) {
    Piece piece;
    piece.queries = Columns(one.queries, one.count, heads_.QueryWidth(), first_query, query_width);
    piece.keys = Columns(one.keys, one.count, heads_.KeyWidth(), slice * key_width, key_width);
    piece.values = Columns(one.values, one.count, heads_.KeyWidth(), slice * key_width, key_width);
    piece.output.resize(one.count * query_width);
    piece.log_sum_exp.resize(one.count * of_slice_.query_heads);
    Piece& kept = pieces.emplace_back(std::move(piece));
    asked.push_back({one.sequence, one.position, one.count, kept.queries.data(), kept.keys.data(),
                     kept.values.data(), kept.output.data(), kept.log_sum_exp.data()});
  }
  absl::Status status = slices_[slice]->Attend(layer, asked);
  if (!status.ok()) return status;
  for (size_t r = 0; r < rows.size(); ++r) {
    PutColumns(pieces[r].output, rows[r].count, heads_.QueryWidth(), first_query, query_width,
               rows[r].output);
    PutColumns(pieces[r].log_sum_exp, rows[r].count, heads_.query_heads, first_query_head,
               of_slice_.query_heads, rows[r].log_sum_exp);
  }
  return absl::OkStatus();
}

}  // namespace cairn::replay
