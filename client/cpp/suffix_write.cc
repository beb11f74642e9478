#include "client/cpp/suffix_write.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/reserve_call.h"
#include "common/base/check.h"

namespace cairn {

SuffixWrite::SuffixWrite(CacheNodeClient* node, const NamespaceHandle* name_space,
                         const Prompt* prompt, const SuffixWriteOptions& options)
    : node_(node), name_space_(name_space), prompt_(prompt), options_(options) {
  CAIRN_CHECK(prompt->block_count() == 0 || !prompt->regions().empty());
}

absl::Status SuffixWrite::Register(CallBudget* budget) {
  registered_ = true;
  return budget->Spend(options_.reserve_timeout, &time_, [&](absl::Duration) {
    return node_->RegisterNamespace(name_space_->name(), name_space_->fields()).status();
  });
}

absl::Status SuffixWrite::Reserve(size_t begin, size_t end, CallBudget* budget) {
  CAIRN_CHECK(begin <= end && end <= prompt_->block_count() && reserved_.empty());
  first_reserved_ = end;
  while (begin < end && !stopped_by_) {
    const size_t count = std::min(end - begin, BlocksOfOneReserve(*name_space_, *prompt_, begin,
                                                                  options_.blocks_per_reserve_max));
    absl::StatusOr<WriteSession> session = Ask(begin, count, budget);
    // A node that started anew knows no namespace.
    if (absl::IsFailedPrecondition(session.status()) && !registered_) {
      if (absl::Status status = Register(budget); !status.ok()) return status;
      session = Ask(begin, count, budget);
    }
    if (!session.ok()) return session.status();
    const size_t settled = Settle(begin, *session);
    if (session->token()) reserved_.push_back({begin, *std::move(session)});
    begin += settled;
  }
  return absl::OkStatus();
}

absl::StatusOr<WriteSession> SuffixWrite::Ask(size_t begin, size_t count, CallBudget* budget) {
  absl::StatusOr<WriteSession> session = absl::UnknownError("not asked");
  const absl::Status status =
      budget->Spend(options_.reserve_timeout, &time_, [&](absl::Duration timeout) {
        session = node_->Reserve(
            *name_space_, *prompt_, begin, count,
            {.token_ttl = options_.token_ttl, .keep = options_.keep, .timeout = timeout});
        return session.status();
      });
  if (!status.ok()) return status;
  return session;
}

size_t SuffixWrite::Settle(size_t begin, const WriteSession& session) {
  size_t settled = 0;
  for (const v1::ReserveAnswer& answer : session.answers()) {
    if (answer.outcome() == v1::RESERVE_OUTCOME_RESERVED) {
      first_reserved_ = std::min(first_reserved_, begin + settled);
    } else if (answer.outcome() == v1::RESERVE_OUTCOME_PRESENT ||
               answer.outcome() == v1::RESERVE_OUTCOME_IN_PROGRESS) {
      ++blocks_of_others_;
    } else {
      stopped_by_ = answer.outcome();
      first_reserved_ = std::min(first_reserved_, begin + settled);
      break;
    }
    ++settled;
  }
  return settled;
}

absl::Status SuffixWrite::Write(PrefillEngine* engine, CallBudget* budget) {
  for (Reserved& reserved : reserved_) {
    const absl::Status status = WriteAndCommit(engine, budget, &reserved);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status SuffixWrite::WriteAndCommit(PrefillEngine* engine, CallBudget* budget,
                                         Reserved* reserved) {
  const auto source = [&](size_t block, const SegmentId& id) {
    return engine->BytesOf(reserved->first_block + block, id);
  };
  WriteSession& session = reserved->session;
  const absl::Status status =
      budget->Spend(options_.write_timeout, &time_, [&](absl::Duration timeout) {
        const absl::StatusOr<WriteResult> written = session.WriteAll(source, {.timeout = timeout});
        if (!written.ok()) return written.status();
        return written->AllWritten() ? absl::OkStatus() : written->errors.front().status;
      });
  if (!status.ok()) return status;
  return budget->Spend(options_.commit_timeout, &time_, [&](absl::Duration timeout) {
    const absl::StatusOr<CommitResult> committed = session.Commit(timeout);
    if (!committed.ok()) return committed.status();
    blocks_written_ += committed->blocks_present;
    if (committed->errors_total > 0) return committed->errors.front().status;
    if (committed->complete) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("the node says that ", committed->missing.size(),
                                            " runs of segments are missing that were written"));
  });
}

}  // namespace cairn
