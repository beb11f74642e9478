#include "client/cpp/decode/session_step.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/wire/decode_limits.h"
#include "kernels/attention/merge.h"

namespace cairn {
namespace {

// What of a place the rows up to `end` can see.
TokenRange Clipped(const TokenRange& tokens, uint64_t end) {
  return {tokens.begin, std::min(tokens.end, end)};
}

const char* RowAt(const void* rows, uint64_t row, uint64_t row_bytes) {
  return static_cast<const char*>(rows) + row * row_bytes;
}

}  // namespace

std::vector<TokenRange> OwnRangesOf(absl::Span<const SessionStep::Placed> places, uint64_t end) {
  std::vector<TokenRange> own;
  for (const SessionStep::Placed& place : places) {
    const TokenRange seen = Clipped(place.tokens, end);
    if (place.part == nullptr && !seen.empty()) own.push_back(seen);
  }
  return own;
}

SessionStep::SessionStep(uint32_t index, const v1::AttentionParameters* parameters,
                         const RowSizes* sizes, uint32_t layer, absl::Span<const SessionRows> rows)
    : index_(index),
      parameters_(parameters),
      sizes_(sizes),
      layer_(layer),
      rows_(rows.begin(), rows.end()),
      pieces_of_(rows.size()) {}

absl::Status SessionStep::Plan(size_t index, absl::Span<const Placed> places) {
  const SessionRows& rows = rows_[index];
  const uint64_t end = rows.position + rows.rows;
  Item one;
  one.rows = 1;
  one.appends = true;
  if (RequestBytesOf(one) > kDecodePayloadBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("a row of these parameters is more than the ",
                                                   kDecodePayloadBytesMax, " bytes of a request"));
  }
  uint64_t covered = 0;
  for (const Placed& place : places) {
    CAIRN_CHECK(place.tokens.begin == covered);  // Every token is at exactly one place.
    covered = place.tokens.end;
    const TokenRange seen = Clipped(place.tokens, end);
    if (seen.empty()) continue;
    Piece piece;
    piece.tokens = seen;
    piece.own = place.part == nullptr;
    const bool appends = place.part != nullptr && place.part->appends() && rows.keys != nullptr;
    bool sees = false;
    for (uint64_t row = 0; row < rows.rows && !sees; ++row) {
      sees = SeesAny(*parameters_, seen, rows.position + row);
    }
    if (!piece.own && !sees && !appends) continue;
    if (!piece.own) {
      piece.rows.output.assign(rows.rows * sizes_->OutputFloats(), 0.0f);
      piece.rows.log_sum_exp.assign(rows.rows * sizes_->query_heads, -INFINITY);
    }
    pieces_of_[index].push_back(pieces_.size());
    pieces_.push_back(std::move(piece));
    if (place.part == nullptr) continue;
    // Rows before the place see nothing of it.
    const uint64_t first = seen.begin > rows.position ? seen.begin - rows.position : 0;
    AddItems(index, pieces_.size() - 1, first, appends, place.part);
  }
  CAIRN_CHECK(covered == kOpenEnd);
  return absl::OkStatus();
}

uint64_t SessionStep::RequestBytesOf(const Item& item) const {
  const uint64_t appended = item.appends ? sizes_->key_bytes + sizes_->value_bytes : 0;
  return item.rows * std::max(sizes_->query_bytes + appended, sizes_->AnswerBytes());
}

void SessionStep::AddItems(size_t index, size_t piece, uint64_t first_row, bool appends,
                           const std::shared_ptr<SessionPart>& part) {
  Item item;
  item.rows_index = index;
  item.piece = piece;
  item.rows = 1;
  item.part = part;
  item.appends = appends;
  const uint64_t rows_max =
      std::min<uint64_t>(kDecodePayloadBytesMax / RequestBytesOf(item), kDecodeRowsMax);
  for (uint64_t row = first_row; row < rows_[index].rows; row += rows_max) {
    item.first_row = row;
    item.rows = std::min(rows_max, rows_[index].rows - row);
    items_.push_back(item);
    Enqueue(items_.size() - 1);
  }
}

void SessionStep::Enqueue(size_t index) {
  Item& item = items_[index];
  item.part_generation = item.part->generation();
  lanes_[item.part->node().decode].unsent.push_back(index);
}

void SessionStep::AskAgain(size_t item) {
  pieces_[items_[item].piece].failed = false;
  Enqueue(item);
}

AskedRows SessionStep::AskedOf(const Item& item) const {
  const SessionRows& rows = rows_[item.rows_index];
  const uint64_t end = rows.position + item.first_row + item.rows;
  AskedRows asked;
  asked.position = rows.position + item.first_row;
  asked.rows = item.rows;
  asked.tokens = item.part->pinned();
  // One that appends holds these rows, and those that came with an earlier try.
  asked.may_hold_more = item.part->appends();
  if (asked.may_hold_more) asked.tokens.end = std::max(asked.tokens.end, end);
  return asked;
}

void SessionStep::FillItem(const Item& item, v1::AttendItem* message) const {
  const SessionRows& rows = rows_[item.rows_index];
  item.part->FillTarget(message);
  message->set_position(rows.position + item.first_row);
  message->set_rows(static_cast<uint32_t>(item.rows));
  message->set_queries(RowAt(rows.queries, item.first_row, sizes_->query_bytes),
                       item.rows * sizes_->query_bytes);
  if (!item.appends) return;
  message->set_keys(RowAt(rows.keys, item.first_row, sizes_->key_bytes),
                    item.rows * sizes_->key_bytes);
  if (sizes_->value_bytes > 0) {
    message->set_values(RowAt(rows.values, item.first_row, sizes_->value_bytes),
                        item.rows * sizes_->value_bytes);
  }
  if (rows.tokens.empty()) return;
  for (uint32_t token : rows.tokens.subspan(item.first_row, item.rows)) message->add_tokens(token);
}

void SessionStep::SendNext(DecodeClient* node, SessionStreams* streams, Lane* lane) {
  const SessionStreams::Opened opened = streams->Get(node);
  if (opened.stream->status().ok() && opened.stream->room() == 0) return;
  v1::DecodeRequest request;
  request.set_parameters(index_);
  request.set_layer(layer_);
  uint64_t bytes = 0;
  uint64_t rows = 0;
  while (!lane->unsent.empty() && lane->under_way.size() < kDecodeItemsMax) {
    const size_t index = lane->unsent.front();
    const Item& item = items_[index];
    if (pieces_[item.piece].failed) {
      lane->unsent.pop_front();
      Fail(index, Trouble::kNotAsked, absl::AbortedError("earlier rows failed"));
      continue;
    }
    if (!opened.stream->status().ok()) {
      lane->unsent.pop_front();
      Fail(index, Trouble::kStreamLost, opened.stream->status());
      continue;
    }
    bytes += RequestBytesOf(item);
    rows += item.rows;
    if (!lane->under_way.empty() && (bytes > kDecodePayloadBytesMax || rows > kDecodeRowsMax))
      break;
    lane->unsent.pop_front();
    lane->under_way.push_back(index);
    FillItem(item, request.add_items());
    rows_asked_ += item.rows;
  }
  if (lane->under_way.empty()) return;
  lane->step = opened.stream->Send(std::move(request));
  lane->generation = opened.generation;
  ++lane->requests;
  ++requests_;
}

void SessionStep::TakeAnswers(SessionStreams::Opened opened, Lane* lane) {
  if (lane->under_way.empty()) return;
  const bool same = opened.generation == lane->generation;
  std::optional<std::vector<v1::AttendResult>> results;
  if (same) results = opened.stream->Take(lane->step);
  if (!results && same && opened.stream->status().ok()) return;
  const std::vector<size_t> items = std::exchange(lane->under_way, {});
  for (size_t i = 0; i < items.size(); ++i) {
    if (results) {
      TakeAnswer(items[i], results->at(i));
    } else {
      Fail(items[i], Trouble::kStreamLost,
           same ? opened.stream->status() : absl::UnavailableError("the stream was lost"));
    }
  }
}

void SessionStep::TakeAnswer(size_t index, const v1::AttendResult& result) {
  Item& item = items_[index];
  absl::Status status = ItemStatus(result);
  if (!status.ok()) return Fail(index, Trouble::kRefused, status);
  const SessionRows& asked = rows_[item.rows_index];
  const uint64_t end = std::max(asked.position + asked.rows, item.part->pinned().end);
  if (item.appends && !asked.again && result.length_tokens() > end) {
    return Fail(index, Trouble::kRefused,
                absl::FailedPreconditionError(
                    absl::StrCat("tokens up to ", result.length_tokens(), " are there in layer ",
                                 layer_, ", past these rows, which end at ", end,
                                 "; truncate it to ", asked.position, " first")));
  }
  PartialRows rows;
  status = TakeResult(result, *parameters_, *sizes_, AskedOf(item), &rows);
  if (!status.ok()) return Fail(index, Trouble::kBadAnswer, status);
  PartialRows& all = pieces_[item.piece].rows;
  std::copy(rows.output.begin(), rows.output.end(),
            all.output.begin() + static_cast<ptrdiff_t>(item.first_row * sizes_->OutputFloats()));
  std::copy(rows.log_sum_exp.begin(), rows.log_sum_exp.end(),
            all.log_sum_exp.begin() + static_cast<ptrdiff_t>(item.first_row * sizes_->query_heads));
  item.answered = true;
}

void SessionStep::Fail(size_t item, Trouble trouble, const absl::Status& status) {
  pieces_[items_[item].piece].failed = true;
  failures_.push_back({item, trouble, status});
}

bool SessionStep::Pump(SessionStreams* streams) {
  bool to_come = false;
  for (auto& [node, lane] : lanes_) {
    if (!lane.under_way.empty()) TakeAnswers(streams->Get(node), &lane);
    if (lane.under_way.empty() && !lane.unsent.empty()) SendNext(node, streams, &lane);
    to_come |= !lane.under_way.empty() || !lane.unsent.empty();
  }
  return to_come;
}

void SessionStep::Run(SessionStreams* streams) {
  while (Pump(streams)) streams->Await();
  uint64_t most = 0;
  for (auto& [node, lane] : lanes_) most = std::max(most, std::exchange(lane.requests, 0));
  round_trips_ += most;
}

std::vector<SessionStep::Failure> SessionStep::TakeFailures() {
  return std::exchange(failures_, {});
}

absl::Status SessionStep::Merge(absl::Span<const OwnRows> own) const {
  for (const Item& item : items_) CAIRN_CHECK(item.answered);
  size_t used = 0;
  for (size_t index = 0; index < rows_.size(); ++index) {
    const SessionRows& rows = rows_[index];
    std::vector<kernels::PartialResult> partials;
    for (const size_t at : pieces_of_[index]) {
      const Piece& piece = pieces_[at];
      if (!piece.own) {
        partials.push_back({piece.rows.output.data(), piece.rows.log_sum_exp.data()});
        continue;
      }
      const auto found = std::find_if(own.begin(), own.end(), [&](const OwnRows& one) {
        return one.index == index && one.tokens == piece.tokens;
      });
      if (found == own.end()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "sequence ", rows.sequence, ": tokens ", piece.tokens.begin, " to ", piece.tokens.end,
            " are the caller's own, and it brings no result for them"));
      }
      partials.push_back({found->output, found->log_sum_exp});
      ++used;
    }
    kernels::MergePartials(partials.data(), partials.size(), rows.rows * sizes_->query_heads,
                           sizes_->output_dim, rows.output, rows.log_sum_exp);
  }
  if (used == own.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(own.size() - used, " results are for tokens that are not the caller's own"));
}

}  // namespace cairn
