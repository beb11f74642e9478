#include "tests/client/cpp/decode/fake_sequence.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "kernels/append.h"
#include "kernels/attention/attention_runner.h"

namespace cairn::testing {
namespace {

// Of `rows` rows of `bytes` each, the columns of one of `slices` equal slices.
std::string SliceOf(const std::string& rows, uint64_t count, uint32_t slices, uint32_t slice) {
  if (slices == 1 || count == 0) return rows;
  const size_t row = rows.size() / count;
  const size_t part = row / slices;
  std::string out;
  for (uint64_t i = 0; i < count; ++i) out += rows.substr(i * row + slice * part, part);
  return out;
}

bool IsFinite(const std::string& bytes, uint32_t row_dtype) {
  if (row_dtype != 3) return true;  // Tests that look at this send float32.
  for (size_t at = 0; at + sizeof(float) <= bytes.size(); at += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof(value));
    if (!std::isfinite(value)) return false;
  }
  return true;
}

}  // namespace

void FakeSequence::AddPage() { pages_.emplace_back(map_->block_bytes() / sizeof(Line), Line{}); }

void FakeSequence::Pin(const std::string& block) {
  CAIRN_CHECK(block.size() == map_->block_bytes() && appended_.empty());
  AddPage();
  std::memcpy(pages_.back().data(), block.data(), block.size());
  pinned_ += map_->layout().block_tokens;
}

uint64_t FakeSequence::Length(uint32_t group, uint32_t slice, uint32_t layer) const {
  const auto found = appended_.find({group, slice, layer});
  return covered() + (found == appended_.end() ? 0 : found->second);
}

uint64_t FakeSequence::Length() const {
  uint64_t least = UINT64_MAX;
  for (const PayloadMap::Part& part : map_->parts()) {
    if (!part.required) continue;
    for (uint32_t layer = 0; layer < part.layers; ++layer) {
      least = std::min(least, Length(part.group, part.slice, layer));
    }
  }
  return least;
}

void FakeSequence::Truncate(uint64_t length) {
  for (auto& [part, tokens] : appended_) tokens = std::min(tokens, length - covered());
  tokens_.erase(tokens_.lower_bound(length), tokens_.end());
}

kernels::KvShape FakeSequence::ShapeOf(uint32_t group_index) const {
  const Layout& layout = map_->layout();
  const Group& group = layout.groups[group_index];
  kernels::KvShape shape;
  shape.kv_heads = group.kv_heads / (IsSliced(group.kind) ? layout.slices : 1);
  shape.page_tokens = layout.block_tokens;
  shape.key_dim = group.key_dim;
  shape.value_dim = group.value_dim;
  shape.dtype = static_cast<kernels::KvDtype>(group.dtype);
  shape.scales = static_cast<kernels::KvScales>(group.scales);
  return shape;
}

uint64_t FakeSequence::OffsetOf(uint32_t group, uint32_t slice, uint32_t layer) const {
  return map_->SegmentOffset(*map_->FindSegment({group, slice, layer}));
}

absl::Status FakeSequence::Check(const RowSizes& sizes, const v1::AttentionParameters& parameters,
                                 const v1::AttendItem& item) const {
  const uint64_t rows = item.rows();
  const bool asks = !item.queries().empty();
  const bool appends = !item.keys().empty();
  if (rows == 0 || (!asks && !appends) ||
      (asks && item.queries().size() != rows * sizes.query_bytes) ||
      (appends && (item.keys().size() != rows * sizes.key_bytes ||
                   item.values().size() != rows * sizes.value_bytes))) {
    return absl::InvalidArgumentError(absl::StrCat(item.queries().size(), ", ", item.keys().size(),
                                                   " and ", item.values().size(),
                                                   " bytes are not of ", rows, " rows"));
  }
  if (!IsFinite(item.queries(), parameters.row_dtype()) ||
      !IsFinite(item.keys(), parameters.row_dtype()) ||
      !IsFinite(item.values(), parameters.row_dtype())) {
    return absl::InvalidArgumentError("a row is not finite");
  }
  return absl::OkStatus();
}

absl::Status FakeSequence::Append(const v1::AttentionParameters& parameters, const RowSizes& sizes,
                                  uint32_t layer, const v1::AttendItem& item) {
  const uint64_t end = item.position() + item.rows();
  const uint64_t length = Length(parameters.group(), sizes.first_slice, layer);
  if (item.position() > length) {
    return absl::FailedPreconditionError(
        absl::StrCat("rows at ", item.position(), ", but it ends at ", length));
  }
  if (end > covered() + reserved_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("rows up to ", end, " of ", covered() + reserved_, " reserved"));
  }
  for (int i = 0; i < item.tokens_size(); ++i) {
    const uint64_t position = item.position() + static_cast<uint64_t>(i);
    const auto [known, is_new] = tokens_.emplace(position, item.tokens(i));
    if (known->second == item.tokens(i)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("token ", item.tokens(i), " at ", position, ": truncate first"));
  }
  while (first_token_ + pages_.size() * map_->layout().block_tokens < end) AddPage();
  std::vector<int64_t> slots;
  for (uint64_t position = item.position(); position < end; ++position) {
    slots.push_back(position < length ? -1 : static_cast<int64_t>(position - first_token_));
  }
  std::vector<kernels::WritableKvRegion> regions;
  std::vector<kernels::KvPage> table;
  for (Page& page : pages_) {
    table.push_back({regions.size(), 0});
    regions.push_back({page.front().bytes, page.size() * sizeof(Line)});
  }
  for (uint32_t i = 0; i < sizes.slices; ++i) {
    const uint32_t slice = sizes.first_slice + i;
    const std::string keys = SliceOf(item.keys(), item.rows(), sizes.slices, i);
    const std::string values = SliceOf(item.values(), item.rows(), sizes.slices, i);
    kernels::AppendBatch batch;
    batch.shape = ShapeOf(parameters.group());
    batch.source_dtype = static_cast<kernels::KvDtype>(parameters.row_dtype());
    batch.regions = regions.data();
    batch.region_count = regions.size();
    batch.segment_offset = OffsetOf(parameters.group(), slice, layer);
    batch.pages = table.data();
    batch.page_count = table.size();
    batch.slots = slots.data();
    batch.token_count = slots.size();
    const uint64_t heads = batch.shape.kv_heads;
    batch.keys = {reinterpret_cast<const std::byte*>(keys.data()), keys.size() / item.rows(),
                  keys.size() / item.rows() / heads};
    batch.values = {reinterpret_cast<const std::byte*>(values.data()), values.size() / item.rows(),
                    values.size() / item.rows() / heads};
    const kernels::Problem problem = kernels::AppendTokens(batch);
    if (!problem.empty()) return absl::InvalidArgumentError(problem);
    uint64_t& tokens = appended_[{parameters.group(), slice, layer}];
    if (end > covered()) tokens = std::max(tokens, end - covered());
  }
  return absl::OkStatus();
}

void FakeSequence::Attend(const v1::AttentionParameters& parameters, const RowSizes& sizes,
                          uint32_t layer, const v1::AttendItem& item, v1::AttendResult* result) {
  const uint64_t rows = item.rows();
  const uint32_t heads = sizes.query_heads / sizes.slices;
  std::vector<kernels::KvRegion> regions;
  std::vector<kernels::KvPage> table;
  for (const Page& page : pages_) {
    table.push_back({regions.size(), 0});
    regions.push_back({page.front().bytes, page.size() * sizeof(Line)});
  }
  std::vector<float> output(rows * sizes.OutputFloats());
  std::vector<float> log_sum_exp(rows * sizes.query_heads);
  for (uint32_t i = 0; i < sizes.slices; ++i) {
    const std::string queries = SliceOf(item.queries(), rows, sizes.slices, i);
    std::vector<kernels::AttentionQuery> asked(rows);
    std::vector<kernels::AttentionSequence> sequences;
    for (uint64_t row = 0; row < rows; ++row) {
      const uint64_t position = item.position() + row;
      const uint64_t first_head = row * sizes.query_heads + i * heads;
      asked[row] = {position, queries.data() + row * (queries.size() / rows),
                    output.data() + first_head * sizes.output_dim, log_sum_exp.data() + first_head};
      const uint64_t end =
          std::min(position + 1, Length(parameters.group(), sizes.first_slice + i, layer));
      sequences.push_back({table.data(), table.size(), end > first_token_ ? end - first_token_ : 0,
                           first_token_, &asked[row], 1});
    }
    kernels::AttentionBatch batch;
    batch.shape = ShapeOf(parameters.group());
    batch.query_heads = heads;
    batch.latent_value_dim = parameters.latent_value_dim();
    batch.query_dtype = static_cast<kernels::KvDtype>(parameters.row_dtype());
    batch.softmax_scale = parameters.softmax_scale();
    batch.logit_soft_cap = parameters.logit_soft_cap();
    batch.window_tokens = parameters.window_tokens();
    batch.sink_tokens = parameters.sink_tokens();
    batch.regions = {regions.data(), regions.size(),
                     OffsetOf(parameters.group(), sizes.first_slice + i, layer)};
    batch.sequences = sequences.data();
    batch.sequence_count = sequences.size();
    kernels::InlinePool threads;
    kernels::AttentionRunner runner(kernels::CpuPath::kBaseline, &threads);
    const kernels::Problem problem = runner.Run(batch);
    CAIRN_CHECK_MSG(problem.empty(), problem);
  }
  result->set_output(output.data(), output.size() * sizeof(float));
  result->set_log_sum_exp(log_sum_exp.data(), log_sum_exp.size() * sizeof(float));
}

absl::Status FakeSequence::Run(const v1::AttentionParameters& parameters, uint32_t layer,
                               const v1::AttendItem& item, v1::AttendResult* result) {
  const absl::StatusOr<RowSizes> sizes = RowSizesOf(*map_, parameters);
  if (!sizes.ok()) return sizes.status();
  if (layer >= sizes->layers) return absl::InvalidArgumentError(absl::StrCat("layer ", layer));
  absl::Status status = Check(*sizes, parameters, item);
  if (status.ok() && !item.keys().empty()) status = Append(parameters, *sizes, layer, item);
  if (!status.ok()) return status;
  if (!item.queries().empty()) Attend(parameters, *sizes, layer, item, result);
  result->set_length_tokens(Length(parameters.group(), sizes->first_slice, layer));
  return absl::OkStatus();
}

}  // namespace cairn::testing
