#include "client/cpp/put_call.h"

#include "absl/strings/str_cat.h"
#include "client/cpp/node_link.h"
#include "client/cpp/reserve_call.h"
#include "client/cpp/write_session.h"

namespace cairn {
namespace {

// Counts the answers up to the first that ends the reservation, and notes that one. The number of
// blocks that are settled.
size_t CountAnswers(const WriteSession& session, PutResult* result) {
  size_t settled = 0;
  for (const v1::ReserveAnswer& answer : session.answers()) {
    switch (answer.outcome()) {
      case v1::RESERVE_OUTCOME_RESERVED:
        break;
      case v1::RESERVE_OUTCOME_PRESENT:
        ++result->blocks_already_present;
        break;
      case v1::RESERVE_OUTCOME_IN_PROGRESS:
        ++result->blocks_in_progress;
        break;
      default:
        result->stopped_by = answer.outcome();
        return settled;
    }
    if (answer.pin() == v1::PIN_OUTCOME_PINNED) ++result->blocks_pinned;
    ++settled;
  }
  return settled;
}

absl::Status WriteAndCommit(WriteSession* session, size_t first_block, SegmentSource source,
                            const PutOptions& options, PutResult* result) {
  const auto from_prompt = [&](size_t block, const SegmentId& id) {
    return source(first_block + block, id);
  };
  const absl::StatusOr<WriteResult> written =
      session->WriteAll(from_prompt, {.timeout = options.timeout,
                                      .wait_when_exhausted = options.wait_when_exhausted,
                                      .source_stays_readable = options.source_stays_readable});
  if (!written.ok()) return written.status();
  if (!written->AllWritten()) return written->errors.front().status;
  const absl::StatusOr<CommitResult> committed = session->Commit();
  if (!committed.ok()) return committed.status();
  if (committed->errors_total > 0) return committed->errors.front().status;
  if (!committed->complete) {
    return absl::InternalError(absl::StrCat("the node says that ", committed->missing.size(),
                                            " runs of segments are missing that were written"));
  }
  result->blocks_written += session->reserved().size();
  result->bytes_written += written->bytes_written;
  return absl::OkStatus();
}

bool IsCutShort(const PutResult& result) {
  return result.stopped_by == v1::RESERVE_OUTCOME_NO_SPACE ||
         result.stopped_by == v1::RESERVE_OUTCOME_QUOTA;
}

}  // namespace

absl::StatusOr<PutResult> PutBlocks(NodeLink* link, const NamespaceHandle& name_space,
                                    const Prompt& prompt, SegmentSource source,
                                    const PutOptions& options) {
  if (prompt.regions().empty() && prompt.block_count() > 0) {
    return absl::InvalidArgumentError("a prompt made from keys cannot be put: tokens are needed");
  }
  if (options.first_block > prompt.block_count()) {
    return absl::InvalidArgumentError(absl::StrCat("first_block: ", options.first_block, " of ",
                                                   prompt.block_count(), " blocks"));
  }
  PutResult result;
  result.blocks_total = prompt.block_count() - options.first_block;
  size_t next = options.first_block;
  while (next < prompt.block_count()) {
    result.stopped_by.reset();
    absl::StatusOr<WriteSession> session =
        ReserveBlocks(link, name_space, prompt, next,
                      BlocksOfOneReserve(name_space, prompt, next, options.blocks_per_reserve_max),
                      {.token_ttl = options.token_ttl,
                       .keep = options.keep,
                       .wait_when_exhausted = options.wait_when_exhausted,
                       .timeout = link->DataTimeout(options.timeout)});
    if (!session.ok()) return session.status();
    const size_t settled = CountAnswers(*session, &result);
    if (session->token()) {
      const absl::Status status = WriteAndCommit(&*session, next, source, options, &result);
      if (!status.ok()) return status;
    }
    next += settled;
    // A reservation that was cut short, but got something, is worth asking again for the rest: what
    // it got is no longer reserved.
    const bool go_on = settled > 0 && IsCutShort(result);
    if (result.stopped_by && !go_on) break;
  }
  return result;
}

}  // namespace cairn
