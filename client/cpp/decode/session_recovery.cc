// What a session does about what failed in a step.
#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/decode/decode_session.h"
#include "common/base/check.h"
#include "common/rpc/field_status.h"
#include "common/rpc/retry_status.h"

namespace cairn {

using Trouble = SessionStep::Trouble;

struct SessionRecovery {
  // Nodes whose streams were opened anew: in the step, and in this pass of failures.
  absl::flat_hash_set<DecodeClient*> reconnected;
  absl::flat_hash_set<DecodeClient*> reconnected_now;
  absl::flat_hash_set<SessionPart*> opened_again;
  absl::flat_hash_map<SessionPart*, uint32_t> attempts;  // At one holder that is busy.
  absl::flat_hash_map<SessionPart*, size_t> moves;
  absl::Duration wait = absl::ZeroDuration();  // Before the next pass.
};

namespace {

// A node whose stream was lost may be gone: then its next holder is asked instead.
constexpr absl::Duration kStateTimeout = absl::Seconds(1);

// Another holder would say the same.
bool IsTheCallers(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kUnimplemented:
      return true;
    case absl::StatusCode::kResourceExhausted:
      return !RetryAfter(status).has_value();
    default:
      return false;
  }
}

bool IsBusy(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status);
}

}  // namespace

absl::Status DecodeSession::Receive(uint64_t number, absl::Span<const OwnRows> own) {
  const auto found = under_way_.find(number);
  CAIRN_CHECK_MSG(found != under_way_.end(), absl::StrCat("step ", number));
  const std::unique_ptr<SessionStep> step = std::move(found->second);
  under_way_.erase(found);
  SessionRecovery recovery;
  absl::Status status;
  while (status.ok()) {
    step->Run(&streams_);
    const std::vector<SessionStep::Failure> failures = step->TakeFailures();
    if (failures.empty()) break;
    status = Recover(failures, step.get(), &recovery);
  }
  counters_.requests += step->requests();
  counters_.round_trips += step->round_trips();
  counters_.rows += step->rows_asked();
  if (!status.ok()) return status;
  return lost_.empty() ? step->Merge(own) : LostStatus();
}

absl::Status DecodeSession::Recover(absl::Span<const SessionStep::Failure> failures,
                                    SessionStep* step, SessionRecovery* recovery) {
  recovery->reconnected_now.clear();
  recovery->wait = absl::ZeroDuration();
  for (const SessionStep::Failure& failure : failures) {
    absl::Status status = RecoverOne(failure, step, recovery);
    if (status.ok()) continue;
    return InField(absl::StrCat("sequence ", step->RowsOf(failure.item).sequence), status);
  }
  if (recovery->wait == absl::ZeroDuration() || parts_.wait->WaitFor(recovery->wait)) {
    return absl::OkStatus();
  }
  return absl::CancelledError("waits between attempts were stopped");
}

absl::Status DecodeSession::RecoverOne(const SessionStep::Failure& failure, SessionStep* step,
                                       SessionRecovery* recovery) {
  SessionPart* const part = step->PartOf(failure.item);
  if (!part->is_open()) {
    NoteGone(failure.item, step);
    return absl::OkStatus();
  }
  // Another item found out first.
  if (part->generation() != step->GenerationOf(failure.item)) {
    AskMoved(failure.item, step);
    return absl::OkStatus();
  }
  switch (failure.trouble) {
    case Trouble::kNotAsked:
      // Where tokens were lost the rows before it were not asked again either.
      if (lost_.empty()) step->AskAgain(failure.item);
      return absl::OkStatus();
    case Trouble::kStreamLost:
      return OnLostStream(failure, step, recovery);
    case Trouble::kRefused:
      return OnRefusal(failure, step, recovery);
    case Trouble::kBadAnswer:
      ++counters_.bad_answers;
      MoveOn(failure.item, /*same_holder_first=*/false, step, recovery);
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status DecodeSession::OnLostStream(const SessionStep::Failure& failure, SessionStep* step,
                                         SessionRecovery* recovery) {
  DecodeClient* const node = step->PartOf(failure.item)->node().decode;
  if (recovery->reconnected_now.contains(node)) {
    Resume(failure.item, step, recovery);
    return absl::OkStatus();
  }
  SessionPart* const part = step->PartOf(failure.item);
  bool again = recovery->reconnected.contains(node);
  if (absl::IsResourceExhausted(failure.status) &&
      ++recovery->attempts[part] < options_.attempts_max) {
    // It takes no more streams now.
    if (!parts_.wait->WaitFor(RetryAfter(failure.status).value_or(kRetryDelayDefault))) {
      return failure.status;
    }
    again = false;
  }
  // Whatever comes of this step: the next one needs a stream that lives.
  streams_.Reconnect(node);
  if (absl::IsInvalidArgument(failure.status) || absl::IsPermissionDenied(failure.status) ||
      absl::IsUnauthenticated(failure.status)) {
    return failure.status;
  }
  if (absl::IsFailedPrecondition(failure.status)) {
    // It serves no attention, or not of this namespace. If nobody else does, that is why.
    if (part->holder_count() == 1) return failure.status;
    again = true;
  }
  if (again) {
    MoveOn(failure.item, /*same_holder_first=*/false, step, recovery);
    return absl::OkStatus();
  }
  ++counters_.reconnects;
  recovery->reconnected.insert(node);
  recovery->reconnected_now.insert(node);
  Resume(failure.item, step, recovery);
  return absl::OkStatus();
}

void DecodeSession::Resume(size_t item, SessionStep* step, SessionRecovery* recovery) {
  SessionPart* const part = step->PartOf(item);
  ++counters_.retries;
  if (!part->appends()) {
    step->AskAgain(item);
    return;
  }
  const SessionRows& rows = step->RowsOf(item);
  const absl::StatusOr<v1::GetSequenceResponse> state =
      part->node().decode->GetSequence(*part->sequence(), kStateTimeout);
  if (!state.ok()) {
    MoveOn(item, /*same_holder_first=*/absl::IsAborted(state.status()), step, recovery);
  } else if (state->length_tokens() >= rows.position) {
    step->AskAgain(item);
  } else {
    NoteLost(rows.sequence, {std::max(state->length_tokens(), part->pinned().end), rows.position},
             /*again=*/true);
  }
}

absl::Status DecodeSession::OnRefusal(const SessionStep::Failure& failure, SessionStep* step,
                                      SessionRecovery* recovery) {
  SessionPart* const part = step->PartOf(failure.item);
  if (IsTheCallers(failure.status)) return failure.status;
  if (IsBusy(failure.status) && ++recovery->attempts[part] < options_.attempts_max) {
    ++counters_.retries;
    recovery->wait =
        std::max(recovery->wait, RetryAfter(failure.status).value_or(kRetryDelayDefault));
    step->AskAgain(failure.item);
    return absl::OkStatus();
  }
  // What is over there may still be had there, as a sequence that was idle for too long.
  const bool same_first =
      absl::IsAborted(failure.status) && recovery->opened_again.insert(part).second;
  MoveOn(failure.item, same_first, step, recovery);
  return absl::OkStatus();
}

void DecodeSession::MoveOn(size_t item, bool same_holder_first, SessionStep* step,
                           SessionRecovery* recovery) {
  SessionPart* const part = step->PartOf(item);
  recovery->attempts.erase(part);
  absl::Status status;
  if (++recovery->moves[part] > part->holder_count()) {
    part->GiveUp();  // All of them fail in what they answer.
  } else {
    status = same_holder_first ? part->OpenAgain() : part->OpenElsewhere();
  }
  if (!status.ok() || !part->is_open()) {
    NoteGone(item, step);
    return;
  }
  ++counters_.parts_opened;
  ++counters_.parts_moved;
  AskMoved(item, step);
}

void DecodeSession::AskMoved(size_t item, SessionStep* step) {
  const SessionPart* const part = step->PartOf(item);
  const SessionRows& rows = step->RowsOf(item);
  if (part->appends() && part->pinned().end < rows.position) {
    NoteLost(rows.sequence, {part->pinned().end, rows.position}, /*again=*/true);
    return;
  }
  ++counters_.retries;
  step->AskAgain(item);
}

void DecodeSession::NoteGone(size_t item, SessionStep* step) {
  const SessionRows& rows = step->RowsOf(item);
  const SessionPart* const part = step->PartOf(item);
  for (const SessionStep::Placed& place : At(rows.sequence).places) {
    if (place.part.get() != part) continue;
    NoteLost(rows.sequence, {place.tokens.begin, std::min(place.tokens.end, rows.position)},
             /*again=*/false);
  }
}

void DecodeSession::NoteLost(uint64_t sequence, const TokenRange& tokens, bool again) {
  for (const LostTokens& one : lost_) {
    if (one.sequence == sequence && one.tokens == tokens) return;
  }
  counters_.lost_tokens += tokens.size();
  lost_.push_back({sequence, tokens, again});
}

absl::Status DecodeSession::LostStatus() const {
  CAIRN_CHECK(!lost_.empty());
  const LostTokens& first = lost_.front();
  return absl::AbortedError(absl::StrCat(
      "sequence ", first.sequence, ": tokens ", first.tokens.begin, " to ", first.tokens.end,
      " are lost, and ", lost_.size() - 1, " other ranges; they must be computed again"));
}

}  // namespace cairn
