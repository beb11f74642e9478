#include "client/replay/served/served_attention.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn::replay {
namespace {

// Ranges of one sequence that are held here, in order.
template <typename Map>
auto RangesOf(Map& places, uint64_t sequence) {
  return std::pair(places.lower_bound({sequence, 0}), places.lower_bound({sequence + 1, 0}));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServedAttention>> ServedAttention::Make(DecodeSession* session,
                                                                       uint64_t pages_max) {
  const v1::AttentionParameters& parameters = session->parameters(0);
  const RowSizes& sizes = session->sizes(0);
  const Layout& layout = session->name_space().payload_map().layout();
  const Group& group = layout.groups[parameters.group()];
  if (session->parameters_count() != 1 || group.kind != GroupKind::kFull ||
      parameters.window_tokens() > 0 || parameters.logit_soft_cap() > 0) {
    return absl::InvalidArgumentError(
        "the model has one group of full attention, without a window or a soft cap");
  }
  if (static_cast<kernels::KvDtype>(parameters.row_dtype()) != kernels::KvDtype::kFloat32) {
    return absl::InvalidArgumentError(
        absl::StrCat("row_dtype is ", parameters.row_dtype(), "; the model's rows are float32, 3"));
  }
  const uint32_t kv_heads = group.kv_heads / layout.slices * sizes.slices;
  LocalAttentionOptions options;
  options.shape.kv_heads = kv_heads;
  options.shape.page_tokens = layout.block_tokens;
  options.shape.key_dim = group.key_dim;
  options.shape.value_dim = group.value_dim;
  options.shape.dtype = static_cast<kernels::KvDtype>(group.dtype);
  options.shape.scales = static_cast<kernels::KvScales>(group.scales);
  options.layers = sizes.layers;
  options.query_heads = sizes.query_heads;
  options.softmax_scale = parameters.softmax_scale();
  options.pages_max = pages_max;
  absl::StatusOr<std::unique_ptr<LocalAttention>> local = LocalAttention::Make(options);
  if (!local.ok()) return local.status();
  const HeadShape heads{sizes.query_heads, kv_heads, group.key_dim};
  return std::unique_ptr<ServedAttention>(new ServedAttention(session, heads, *std::move(local)));
}

ServedAttention::ServedAttention(DecodeSession* session, const HeadShape& heads,
                                 std::unique_ptr<LocalAttention> local)
    : session_(session), heads_(heads), local_(std::move(local)) {}

void ServedAttention::SetTokens(uint64_t sequence, const std::vector<uint32_t>* tokens) {
  tokens_[sequence] = tokens;
}

SessionRows ServedAttention::MessageOf(const AttentionRows& rows) const {
  SessionRows message;
  message.sequence = rows.sequence;
  message.position = rows.position;
  message.rows = rows.count;
  message.queries = rows.queries;
  message.output = rows.output;
  message.log_sum_exp = rows.log_sum_exp;
  const uint64_t end = rows.position + rows.count;
  if (end <= session_->CoveredTokens(rows.sequence)) return message;  // They are there already.
  message.keys = rows.keys;
  message.values = rows.values;
  const auto known = tokens_.find(rows.sequence);
  if (known != tokens_.end() && known->second->size() >= end) {
    message.tokens = absl::MakeConstSpan(*known->second).subspan(rows.position, rows.count);
    message.again = known->second->size() > end;
  }
  return message;
}

absl::StatusOr<uint64_t> ServedAttention::LocalOf(const Place& place) {
  const auto found = places_.find(place);
  if (found != places_.end()) return found->second;
  const uint64_t number = next_number_++;
  if (absl::Status status = local_->Open(number, place.second); !status.ok()) return status;
  places_.emplace(place, number);
  return number;
}

absl::Status ServedAttention::AttendOwn(uint32_t layer, size_t index, const AttentionRows& rows,
                                        const TokenRange& range) {
  const absl::StatusOr<uint64_t> number = LocalOf({rows.sequence, range.begin});
  if (!number.ok()) return number.status();
  Partial& partial = partials_.emplace_back();
  partial.index = index;
  partial.tokens = range;
  partial.output.resize(rows.count * heads_.QueryWidth());
  partial.log_sum_exp.resize(rows.count * heads_.query_heads);
  AttentionRows own = rows;
  own.sequence = *number;
  own.output = partial.output.data();
  own.log_sum_exp = partial.log_sum_exp.data();
  const absl::StatusOr<uint64_t> held = local_->EndPosition(*number);
  if (!held.ok()) return held.status();
  const uint64_t end = rows.position + rows.count;
  // Rows that end the range are stored, unless they were before.
  if (range.end == end && *held < end) return local_->Attend(layer, {&own, 1});
  if (*held < range.end) {
    return absl::FailedPreconditionError(
        absl::StrCat("sequence ", rows.sequence, ": tokens up to ", range.end,
                     " are the worker's, which has those up to ", *held));
  }
  return local_->AttendStored(layer, {&own, 1});
}

absl::Status ServedAttention::Attend(uint32_t layer, absl::Span<const AttentionRows> rows) {
  std::vector<SessionRows> messages;
  for (const AttentionRows& one : rows) messages.push_back(MessageOf(one));
  const absl::StatusOr<uint64_t> step = session_->Send(0, layer, messages);
  if (!step.ok()) return step.status();
  partials_.clear();
  absl::Status own_status;
  for (size_t i = 0; i < rows.size() && own_status.ok(); ++i) {
    const uint64_t end = rows[i].position + rows[i].count;
    for (const TokenRange& range : session_->OwnTokens(rows[i].sequence, end)) {
      own_status = AttendOwn(layer, i, rows[i], range);
      if (!own_status.ok()) break;
    }
  }
  std::vector<OwnRows> own;
  for (const Partial& partial : partials_) {
    own.push_back(
        {partial.index, partial.tokens, partial.output.data(), partial.log_sum_exp.data()});
  }
  // What was sent is received in any case.
  const absl::Status status = session_->Receive(*step, own);
  return own_status.ok() ? status : own_status;
}

absl::Status ServedAttention::Rewind(uint64_t sequence, uint64_t position) {
  const auto [begin, end] = RangesOf(places_, sequence);
  for (auto place = begin; place != end; ++place) {
    const absl::StatusOr<uint64_t> held = local_->EndPosition(place->second);
    if (!held.ok()) return held.status();
    if (place->first.second > position) continue;  // Held since before, and whole.
    const absl::Status status = local_->Truncate(place->second, std::min(*held, position));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> ServedAttention::HeldFrom(uint64_t sequence, uint64_t covered) const {
  const auto found = places_.find({sequence, covered});
  return found == places_.end() ? covered : local_->EndPosition(found->second);
}

absl::Status ServedAttention::Fork(uint64_t sequence, uint64_t fork) {
  std::vector<std::pair<Place, uint64_t>> copies;
  const auto [begin, end] = RangesOf(places_, sequence);
  for (auto place = begin; place != end; ++place) {
    const uint64_t number = next_number_++;
    if (absl::Status status = local_->Fork(place->second, number); !status.ok()) return status;
    copies.push_back({{fork, place->first.second}, number});
  }
  places_.insert(copies.begin(), copies.end());
  return absl::OkStatus();
}

void ServedAttention::Close(uint64_t sequence) {
  const auto [begin, end] = RangesOf(places_, sequence);
  for (auto place = begin; place != end; ++place) CAIRN_CHECK_OK(local_->Close(place->second));
  places_.erase(begin, end);
  tokens_.erase(sequence);
}

absl::Status ServedAttention::AppendPart(uint64_t sequence, absl::Span<const std::byte> part) {
  const absl::StatusOr<uint64_t> number = LocalOf({sequence, 0});
  if (!number.ok()) return number.status();
  return local_->AppendPart(*number, part);
}

}  // namespace cairn::replay
