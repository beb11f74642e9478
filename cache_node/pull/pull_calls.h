// PullCalls: PullBlocks and DescribeBlocks, without RPC: checks a call, takes what nobody has in
// hand, hands it to the threads of pulls, and answers what became of it.
//
// Once taken, a pull is this node's: a call that gives up or goes away stops nothing and holds
// nothing. Calls that ask for the same blocks share one transfer and its outcome. Begin and
// TryAnswer do not block. Thread-safe. Borrows its parts, which outlive it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "cache_node/pull/block_puller.h"
#include "cache_node/pull/pull_board.h"
#include "cache_node/pull/pull_metrics.h"
#include "cache_node/pull/pull_source.h"
#include "cairn/v1/pull.pb.h"
#include "common/rpc/caller_identity.h"
#include "common/server/executor.h"

namespace cairn::node {

class PullCalls {
 public:
  struct Parts {
    std::string node_id;
    BlockStore* store = nullptr;
    PullSources* sources = nullptr;
    PullBoard* board = nullptr;
    BlockPuller* puller = nullptr;
    Executor* threads = nullptr;
    TenantRates* rates = nullptr;               // As PullBatch::Parts.
    const PublicScope* public_scope = nullptr;  // The same.
    const Clock* clock = nullptr;
    std::function<void()> settled;  // Some block's outcome is known. Cheap; may be null.
    PullMetrics metrics;
  };

  explicit PullCalls(Parts parts) : parts_(std::move(parts)) {}

  // A call that waits for its outcomes.
  class Pending {
   public:
    absl::Duration wait() const { return wait_; }

   private:
    friend class PullCalls;
    absl::Duration wait_;
    uint64_t block_bytes_ = 0;
    std::vector<PullBoard::FlightRef> flights_;  // One a key; null: it was here.
    // Leading ones that are over, and stay so: looked at once, however often the call is tried.
    mutable size_t over_ = 0;
  };

  // INVALID_ARGUMENT, PERMISSION_DENIED; FAILED_PRECONDITION for a namespace that is not known here
  // or a peer that is none; RESOURCE_EXHAUSTED over a bound.
  absl::StatusOr<Pending> Begin(const Caller& caller, const v1::PullBlocksRequest& request)
      ABSL_LOCKS_EXCLUDED(order_mutex_);
  // False: not `last`, and some outcome is not known yet. One thread at a time for one call.
  bool TryAnswer(const Pending& pending, bool last, v1::PullBlocksResponse* response) const;

  // What a peer asks.
  absl::Status DescribeBlocks(const Caller& caller, const v1::DescribeBlocksRequest& request,
                              v1::DescribeBlocksResponse* response) const;

 private:
  struct Job {
    PullTarget target;
    std::shared_ptr<PullSource> source;
    std::vector<BlockKey> keys;
    std::vector<PullBoard::FlightRef> flights;  // One a key, as Pending's.
    std::vector<bool> own;
    absl::Time begun;
  };

  absl::StatusOr<Job> MakeJob(const Caller& caller, const v1::PullBlocksRequest& request) const;
  absl::Status CheckTarget(const Job& job) const;
  // Joins what is not here yet.
  absl::Status Take(Job* job) ABSL_LOCKS_EXCLUDED(order_mutex_);
  void Run(const Job& job);
  // The outcome of the last of own blocks [first, end).
  PullOutcome RunOwn(const Job& job, size_t first, size_t end);
  void End(const Job& job, size_t index, PullOutcome outcome,
           std::shared_ptr<const std::string> why = nullptr);

  const Parts parts_;
  // Jobs start in the order in which their blocks were joined, so that none waits for one that is
  // queued behind it.
  absl::Mutex order_mutex_;
};

}  // namespace cairn::node
