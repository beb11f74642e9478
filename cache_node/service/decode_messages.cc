#include "cache_node/service/decode_messages.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "cache_node/service/store_messages.h"
#include "common/base/check.h"
#include "common/rpc/id_conversion.h"
#include "common/rpc/retry_status.h"

namespace cairn::node {
namespace {

// Messages of one answer, all together: an answer of refusals alone must fit the transport.
constexpr size_t kMessagesBytesMax = 32 << 10;

absl::Status SetTarget(const v1::AttendItem& message, bool sequences, DecodeItem* item) {
  if (message.has_leased()) {
    const v1::LeasedBlocks& leased = message.leased();
    const absl::StatusOr<LeaseId> lease = IdFromProto<LeaseId>(leased.lease(), "leased.lease");
    if (!lease.ok()) return lease.status();
    item->target = DecodeItem::Target::kLeased;
    item->leased = {.lease = *lease,
                    .prompt = leased.prompt(),
                    .first_block = leased.first_block(),
                    .blocks = leased.blocks()};
    return absl::OkStatus();
  }
  if (message.target_case() != v1::AttendItem::kSequence) return absl::OkStatus();
  if (!sequences) {
    return absl::InvalidArgumentError("sequence: sequences are asked in a DecodeStream only");
  }
  const absl::StatusOr<SequenceId> id = IdFromProto<SequenceId>(message.sequence(), "sequence");
  if (!id.ok()) return id.status();
  item->target = DecodeItem::Target::kSequence;
  item->sequence = *id;
  return absl::OkStatus();
}

uint32_t RetryMs(const absl::Status& status) {
  const std::optional<absl::Duration> delay = RetryAfter(status);
  return delay.has_value() ? ToMilliseconds(*delay) : 0;
}

uint32_t Saturated(uint64_t count) {
  return static_cast<uint32_t>(std::min<uint64_t>(count, std::numeric_limits<uint32_t>::max()));
}

}  // namespace

absl::StatusOr<AttendShape> ShapeFromProto(const PayloadMap& map,
                                           const v1::AttentionParameters& parameters) {
  return MakeAttendShape(map, {.group = parameters.group(),
                               .first_slice = parameters.first_slice(),
                               .slices = parameters.slices(),
                               .query_heads = parameters.query_heads(),
                               .row_dtype = parameters.row_dtype(),
                               .softmax_scale = parameters.softmax_scale(),
                               .logit_soft_cap = parameters.logit_soft_cap(),
                               .window_tokens = parameters.window_tokens(),
                               .sink_tokens = parameters.sink_tokens(),
                               .latent_value_dim = parameters.latent_value_dim()});
}

absl::Status CheckItemCount(const AttendItems& items) {
  if (items.size() <= kItemsAnsweredMax) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("items: ", items.size(),
                                                 ", a request has at most ", kDecodeItemsMax,
                                                 ": ask for the rest in another one"));
}

void ItemsFromProto(const AttendItems& items, bool sequences, DecodeStep* step,
                    AttendResults* results) {
  const auto count = static_cast<size_t>(items.size());
  step->items.assign(count, {});
  step->results.assign(count, {});
  for (size_t i = 0; i < count; ++i) {
    const v1::AttendItem& from = items.Get(static_cast<int>(i));
    DecodeItem& item = step->items[i];
    DecodeResult& result = step->results[i];
    v1::AttendResult* const to = results->Add();
    result.output = to->mutable_output();
    result.log_sum_exp = to->mutable_log_sum_exp();
    result.status = SetTarget(from, sequences, &item);
    item.position = from.position();
    item.rows = from.rows();
    item.queries = from.queries();
    item.keys = from.keys();
    item.values = from.values();
    item.tokens = {from.tokens().data(), static_cast<size_t>(from.tokens_size())};
  }
}

void StatusesToProto(const DecodeStep& step, AttendResults* results) {
  CAIRN_CHECK(static_cast<size_t>(results->size()) == step.results.size());
  size_t left = kMessagesBytesMax;
  for (size_t i = 0; i < step.results.size(); ++i) {
    const DecodeResult& result = step.results[i];
    v1::AttendResult* const to = results->Mutable(static_cast<int>(i));
    to->set_length_tokens(result.length_tokens);
    if (result.status.ok()) continue;
    to->set_code(static_cast<int>(result.status.code()));
    to->set_retry_ms(RetryMs(result.status));
    const absl::string_view message = result.status.message().substr(0, left);
    left -= message.size();
    to->set_message(std::string(message));
  }
}

void RefuseAll(const absl::Status& status, DecodeStep* step) {
  for (DecodeResult& result : step->results) {
    if (result.status.ok()) result.status = status;
  }
}

void ToMessage(const Sequence& sequence, v1::GetSequenceResponse* message) {
  message->set_first_token(sequence.first_token());
  message->set_covered_tokens(sequence.covered_tokens());
  message->set_reserved_tokens(sequence.capacity_tokens() - sequence.covered_tokens());
  message->set_length_tokens(sequence.length_tokens());
  message->set_sealed_blocks(sequence.sealed_blocks());
  for (const PayloadMap::Part& part : sequence.map().parts()) {
    v1::SliceLengths* const slice = message->add_slices();
    slice->set_group(part.group);
    slice->set_slice(part.slice);
    for (uint32_t layer = 0; layer < part.layers; ++layer) {
      slice->add_length_tokens(sequence.LengthOf(part.first_segment + layer));
    }
  }
}

void ToMessage(const DecodeNumbers& numbers, uint64_t waiting, v1::DecodeReport* message) {
  message->set_bytes_max(numbers.bytes_max);
  message->set_bytes_free(numbers.bytes_free());
  message->set_tokens_reserved(numbers.tokens_reserved);
  message->set_tokens_free(numbers.tokens_free);
  message->set_running(Saturated(numbers.running));
  message->set_waiting(Saturated(waiting));
  message->set_refused(numbers.refused);
  message->set_reclaimed(numbers.reclaimed());
  message->set_preempted(0);  // Room is reserved.
}

}  // namespace cairn::node
