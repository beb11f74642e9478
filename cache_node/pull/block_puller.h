// BlockPuller: brings the blocks of one call from a peer, batch after batch, to the first that
// cannot come.
//
// A transfer that breaks goes on with what is missing, a few times, as long as the source may come
// back; what has landed is present and not fetched again. Blocks the calling thread; uses no lock
// of its own. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cache_node/pull/pull_batch.h"
#include "common/base/clock.h"

namespace cairn::node {

class BlockPuller {
 public:
  // Reserved and asked for at once; a source streams them one after the other.
  static constexpr size_t kBatchBlocksMax = 64;
  static constexpr uint64_t kBatchBytesMax = uint64_t{64} << 20;
  // Transfers without a new block in between.
  static constexpr int kAttemptsMax = 3;
  static constexpr absl::Duration kRetryWait = absl::Milliseconds(200);
  static constexpr absl::Duration kTimeMax = absl::Minutes(10);

  // Borrows the parts, which outlive it; next_writer is its own.
  BlockPuller(PullBatch::Parts parts, const Clock* clock);

  BlockPuller(const BlockPuller&) = delete;
  BlockPuller& operator=(const BlockPuller&) = delete;

  // Calls `ended` once for each of `keys`, in order. `listed`: see PullBatch. Answers how the
  // source failed last.
  absl::Status Pull(const PullTarget& target, PullSource* source, absl::Span<const BlockKey> keys,
                    absl::Span<const BlockKey> listed,
                    absl::FunctionRef<void(size_t index, PullOutcome outcome)> ended);

 private:
  size_t BatchBlocks(const PullTarget& target) const;
  // Whether to try again after a failure; waits before it says so. `any_came`: blocks, before it.
  bool TryAgain(const absl::Status& status, bool any_came, int attempts, absl::Time deadline) const;

  std::atomic<uint64_t> next_writer_;
  PullBatch::Parts parts_;
  const Clock* const clock_;
};

}  // namespace cairn::node
