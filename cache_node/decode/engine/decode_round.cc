#include "cache_node/decode/engine/decode_round.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn::node {
namespace {

// Where a kernel reads and writes numbers of rows as they lie in strings.
const std::byte* Bytes(absl::string_view text) {
  return reinterpret_cast<const std::byte*>(text.data());
}
float* Floats(std::string* text) { return reinterpret_cast<float*>(text->data()); }

}  // namespace

void DecodeRound::Prepare(std::vector<DecodeStep*> steps, absl::Time now) {
  CAIRN_CHECK(steps_.empty());
  steps_ = std::move(steps);
  places_.clear();
  found_.clear();
  found_at_.clear();
  cost_ = {};
  totals_ = {};
  batches_ = 0;
  leases_->Begin(now);
  for (DecodeStep* const step : steps_) {
    CAIRN_CHECK(step->results.size() == step->items.size());
    if (!step->cancelled()) AppendAll(step);
  }
  // Only now: appending may move pages of sequences, and end some.
  for (DecodeStep* const step : steps_) {
    if (!step->cancelled()) FindRuns(step);
  }
}

void DecodeRound::AppendAll(DecodeStep* step) {
  for (size_t i = 0; i < step->items.size(); ++i) {
    const DecodeItem& item = step->items[i];
    absl::Status& status = step->results[i].status;
    if (status.ok() && !item.keys.empty()) status = Append(*step, item);
  }
}

absl::Status DecodeRound::Append(const DecodeStep& step, const DecodeItem& item) {
  CAIRN_CHECK(item.target == DecodeItem::Target::kSequence);
  const absl::StatusOr<const Sequence*> sequence = sequences_->Find(step.tenant, item.sequence);
  if (!sequence.ok()) return sequence.status();
  if ((*sequence)->common().fingerprint != step.fingerprint) {
    return absl::InvalidArgumentError("sequence: it is of another namespace than the stream");
  }
  AppendRows rows;
  rows.group = step.shape->group;
  rows.first_slice = step.shape->first_slice;
  rows.slices = step.shape->slices;
  rows.layer = step.layer;
  rows.position = item.position;
  rows.rows = item.rows;
  rows.keys = item.keys;
  rows.values = item.values;
  rows.row_dtype = step.shape->row_dtype;
  rows.tokens = item.tokens;
  return sequences_->Append(*sequence, rows);
}

void DecodeRound::FindRuns(DecodeStep* step) {
  for (size_t i = 0; i < step->items.size(); ++i) {
    const DecodeItem& item = step->items[i];
    DecodeResult& result = step->results[i];
    if (!result.status.ok()) continue;
    const absl::StatusOr<SlotRun> run = FindRun(*step, item);
    if (!run.ok()) {
      result.status = run.status();
      continue;
    }
    result.length_tokens = run->first_position + run->tokens;
    if (item.queries.empty()) continue;
    places_.push_back({step, i, *run});
    AddCost(*step, item, *run);
  }
}

absl::StatusOr<SlotRun> DecodeRound::FindRun(const DecodeStep& step, const DecodeItem& item) {
  if (item.target == DecodeItem::Target::kSequence) return FindStored(step, item);
  CAIRN_CHECK(item.target == DecodeItem::Target::kLeased);
  return leases_->Find(step.tenant, step.fingerprint, item.leased, *step.shape);
}

absl::StatusOr<const Sequence*> DecodeRound::FindSequence(const DecodeStep& step,
                                                          const DecodeItem& item) {
  const SequenceKey key(step.tenant, item.sequence);
  const auto [it, added] = found_at_.emplace(key, found_.size());
  if (added) found_.push_back({key, sequences_->Find(step.tenant, item.sequence)});
  const absl::StatusOr<const Sequence*>& sequence = found_[it->second].sequence;
  // Also of what another step of the round found: streams of several namespaces meet here.
  if (sequence.ok() && (*sequence)->common().fingerprint != step.fingerprint) {
    return absl::InvalidArgumentError("sequence: it is of another namespace than the stream");
  }
  return sequence;
}

absl::StatusOr<SlotRun> DecodeRound::FindStored(const DecodeStep& step, const DecodeItem& item) {
  const absl::StatusOr<const Sequence*> sequence = FindSequence(step, item);
  if (!sequence.ok()) return sequence.status();
  const AttendShape& shape = *step.shape;
  SlotRun run = (*sequence)->Stored(shape.group, shape.first_slice, step.layer);
  for (uint32_t i = 1; i < shape.slices; ++i) {
    const SlotRun other = (*sequence)->Stored(shape.group, shape.first_slice + i, step.layer);
    run.tokens = std::min(run.tokens, other.tokens);
  }
  const auto [begin, end] = (*sequence)->released();
  if (begin == end || item.queries.empty()) return run;
  const uint64_t window = shape.window_tokens;
  const bool sees_from_there = window == 0 || item.position + 1 < end + window;
  if ((sees_from_there && item.position + item.rows > begin) || shape.sink_tokens > begin) {
    return absl::FailedPreconditionError(absl::StrCat("positions ", begin, " to ", end,
                                                      " of the sequence were given back, and a "
                                                      "query at ",
                                                      item.position, " would see some of them"));
  }
  return run;
}

void DecodeRound::AddCost(const DecodeStep& step, const DecodeItem& item, const SlotRun& run) {
  const AttendShape& shape = *step.shape;
  uint64_t tokens = run.tokens;
  if (shape.window_tokens > 0) {
    tokens = std::min(tokens, shape.window_tokens + shape.sink_tokens + item.rows);
  }
  cost_.bytes += tokens * shape.TokenBytes();
  cost_.products +=
      tokens * item.rows * shape.query_heads * (uint64_t{shape.kv.key_dim} + shape.output_dim);
}

size_t DecodeRound::SortBatch(size_t begin) {
  const AttendShape& shape = *places_[begin].step->shape;
  const auto goes_with = [&](const Place& place) {
    return place.step->shape == &shape || SameAttention(*place.step->shape, shape);
  };
  const auto end = std::stable_partition(places_.begin() + static_cast<ptrdiff_t>(begin),
                                         places_.end(), goes_with);
  return static_cast<size_t>(end - places_.begin());
}

void DecodeRound::Compute(kernels::AttentionRunner* runner, kernels::WorkerPool* pool) {
  for (size_t begin = 0; begin < places_.size();) {
    const size_t end = SortBatch(begin);
    ComputeBatch(begin, end, runner, pool);
    begin = end;
  }
  RecheckAll();
}

void DecodeRound::ComputeBatch(size_t begin, size_t end, kernels::AttentionRunner* runner,
                               kernels::WorkerPool* pool) {
  const AttendShape& shape = *places_[begin].step->shape;
  batch_.clear();
  for (size_t i = begin; i < end; ++i) {
    const Place& place = places_[i];
    const DecodeItem& from = place.step->items[place.item];
    DecodeResult& result = place.step->results[place.item];
    result.output->resize(from.rows * shape.OutputRowBytes());
    result.log_sum_exp->resize(from.rows * shape.LogSumExpRowBytes());
    AttendItem item;
    item.run = place.run;
    item.position = from.position;
    item.rows = from.rows;
    item.layer = place.step->layer;
    item.queries = Bytes(from.queries);
    item.output = Floats(result.output);
    item.log_sum_exp = Floats(result.log_sum_exp);
    batch_.push_back(item);
  }
  const absl::Status status = plan_.Run(shape, batch_, runner, pool);
  ++batches_;
  totals_.rows += plan_.totals().rows;
  totals_.shared_rows += plan_.totals().shared_rows;
  totals_.read_bytes += plan_.totals().read_bytes;
  totals_.saved_bytes += plan_.totals().saved_bytes;
  for (size_t i = begin; i < end && !status.ok(); ++i) {
    Fail(&places_[i].step->results[places_[i].item], status);
  }
}

void DecodeRound::RecheckAll() {
  for (Found& found : found_) {
    if (found.sequence.ok()) found.sequence = sequences_->Find(found.key.first, found.key.second);
  }
  for (const Place& place : places_) {
    const DecodeItem& item = place.step->items[place.item];
    DecodeResult& result = place.step->results[place.item];
    if (!result.status.ok()) continue;
    absl::Status status;
    if (item.target == DecodeItem::Target::kSequence) {
      status =
          found_[found_at_.at(SequenceKey(place.step->tenant, item.sequence))].sequence.status();
    } else {
      status =
          leases_->Recheck(place.step->tenant, place.step->fingerprint, item.leased, place.run);
    }
    if (!status.ok()) Fail(&result, std::move(status));
  }
}

void DecodeRound::Fail(DecodeResult* result, absl::Status status) {
  result->status = std::move(status);
  result->output->clear();
  result->log_sum_exp->clear();
  result->length_tokens = 0;
}

std::vector<DecodeStep*> DecodeRound::TakeSteps() {
  for (DecodeStep* const step : steps_) {
    if (!step->cancelled()) continue;
    for (DecodeResult& result : step->results) {
      if (result.status.ok()) Fail(&result, absl::CancelledError("nobody waits for it any more"));
    }
  }
  places_.clear();
  found_.clear();
  found_at_.clear();
  return std::exchange(steps_, {});
}

}  // namespace cairn::node
