#include "cache_node/pull/block_puller.h"

#include <algorithm>

namespace cairn::node {
namespace {

// Streams of writers count from 1 (GenericService).
constexpr uint64_t kFirstWriter = uint64_t{1} << 63;

}  // namespace

BlockPuller::BlockPuller(PullBatch::Parts parts, const Clock* clock)
    : next_writer_(kFirstWriter), parts_(parts), clock_(clock) {
  parts_.next_writer = &next_writer_;
}

size_t BlockPuller::BatchBlocks(const PullTarget& target) const {
  const PayloadMap* map = parts_.store->FindPayloadMap(target.fingerprint);
  if (map == nullptr) return 1;
  return std::clamp<size_t>(static_cast<size_t>(kBatchBytesMax / map->block_bytes()), 1,
                            kBatchBlocksMax);
}

bool BlockPuller::TryAgain(const absl::Status& status, bool any_came, int attempts,
                           absl::Time deadline) const {
  // A transfer that ran out of its time is one of many bytes, or of few a second; one that brought
  // nothing meanwhile would bring nothing again.
  const bool slow = absl::IsDeadlineExceeded(status) && any_came;
  if (!slow && !absl::IsUnavailable(status) && !absl::IsResourceExhausted(status)) return false;
  if (attempts >= kAttemptsMax || clock_->SteadyNow() >= deadline) return false;
  return parts_.wait->WaitFor(kRetryWait * attempts);
}

absl::Status BlockPuller::Pull(const PullTarget& target, PullSource* source,
                               absl::Span<const BlockKey> keys, absl::Span<const BlockKey> listed,
                               absl::FunctionRef<void(size_t index, PullOutcome outcome)> ended) {
  const size_t batch_blocks = BatchBlocks(target);
  const absl::Time deadline = clock_->SteadyNow() + kTimeMax;
  absl::Status failed;
  int attempts = 0;
  size_t next = 0;
  PullOutcome end = PullOutcome::kSkipped;  // Of the first that did not come.
  while (next < keys.size()) {
    if (clock_->SteadyNow() >= deadline) {
      failed = absl::DeadlineExceededError("the pull took too long");
      end = PullOutcome::kSourceFailed;
      break;
    }
    PullBatch batch(parts_, target, source, keys.subspan(next, batch_blocks), listed);
    const absl::Status status = batch.Run();
    if (!status.ok()) {
      failed = status;
      parts_.metrics.source_failures.Increment();
    }
    const size_t before = next;
    for (const PullOutcome outcome : batch.outcomes()) {
      end = outcome;
      if (!LeadsOn(outcome)) break;
      ended(next++, outcome);
    }
    const bool any_came = next > before;
    attempts = any_came ? 1 : attempts + 1;
    if (LeadsOn(end)) continue;
    if (end != PullOutcome::kSourceFailed) break;
    if (!TryAgain(status, any_came, attempts, deadline)) break;
  }
  // What comes after it would be out of reach.
  for (size_t i = next; i < keys.size(); ++i) ended(i, i == next ? end : PullOutcome::kSkipped);
  return failed;
}

}  // namespace cairn::node
