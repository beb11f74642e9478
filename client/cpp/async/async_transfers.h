// AsyncTransfers: a client for loops that must never wait, such as an engine's scheduler.
//
// Submit takes a transfer and returns at once; a few threads make its calls; Poll says what came of
// it. event_fd() is readable while there is something to poll. One transfer's calls are made in
// order, transfers among each other in turn, so that a long one does not hold up the others by more
// than a step.
//
// A transfer ends with exactly one event that has a result. Until that was polled, the memory that
// the transfer was given belongs to it. At most `transfers_max` are not polled to their end:
// RESOURCE_EXHAUSTED beyond. What is refused was not taken: lease, session and all are still the
// caller's, to be submitted again.
//
// Results own what they brought. To destroy a lease or a session that has not ended is a call, of
// at most a second: a loop that must not wait hands them on to a transfer, or to another thread.
//
// Thread-safe; no call but the destructor waits for a node, or for another thread's call. The
// destructor cancels what is left, waits for the calls under way, each within its deadline, and
// drops the results. Borrows client and clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "client/cpp/async/event_signal.h"
#include "client/cpp/async/transfer.h"
#include "client/cpp/async/transfer_types.h"
#include "client/cpp/cache_node_client.h"
#include "common/base/clock.h"

namespace cairn {

inline constexpr size_t kAsyncThreadsMax = 64;

struct AsyncOptions {
  // Calls under way at once; 1 to kAsyncThreadsMax. A lookup that waits has one of them too.
  size_t threads = 4;
  size_t transfers_max = 4096;
};

class AsyncTransfers {
 public:
  // REQUIRES: options within their bounds.
  AsyncTransfers(CacheNodeClient* client, const Clock* clock, const AsyncOptions& options = {});
  ~AsyncTransfers();

  AsyncTransfers(const AsyncTransfers&) = delete;
  AsyncTransfers& operator=(const AsyncTransfers&) = delete;

  absl::StatusOr<TransferId> Submit(LookupTransfer asked);
  absl::StatusOr<TransferId> Submit(LeaseTransfer asked);
  absl::StatusOr<TransferId> Submit(ReserveTransfer asked);
  // INVALID_ARGUMENT for steps that CheckSteps refuses and a lease of several prompts.
  absl::StatusOr<TransferId> Submit(LoadTransfer&& asked);
  // INVALID_ARGUMENT for steps that CheckSteps refuses and a session that reserved nothing.
  absl::StatusOr<TransferId> Submit(StoreTransfer&& asked);

  // The source of a store can be read for so many of its first steps. Nothing for one that is over,
  // or that could be read that far already.
  void SourceReady(TransferId id, uint32_t steps);
  // No further call of it is made: its result will be CANCELLED, unless the call under way is its
  // last. A load then ends its share of the lease and a store its token, for all ranks. Nothing for
  // one that is over.
  void Cancel(TransferId id);

  // What is new, at most `events_max` transfers, the oldest first; of each transfer the newest
  // event. Empty when nothing is.
  std::vector<TransferEvent> Poll(size_t events_max);
  // -1 when the process had no descriptor left: poll by time then.
  int event_fd() const { return signal_.fd(); }

  // Those whose result was not polled yet.
  size_t open_count() const;

 private:
  enum class State { kQueued, kRunning, kWaiting, kOver };
  struct Entry {
    std::unique_ptr<Transfer> transfer;  // Null while a thread has it, and when it is over.
    State state = State::kQueued;
    bool cancelled = false;
    uint32_t steps_ready = 0;
    bool has_news = false;
    uint32_t steps_done = 0;
    size_t usable = 0;
    std::optional<TransferResult> result;
  };

  struct Work {
    TransferId id{};
    bool cancelled = false;
    uint32_t steps_ready = 0;
    std::unique_ptr<Transfer> transfer;
  };

  // Room for one more, which Add then takes; whether there is any comes before what is taken.
  absl::Status Admit();
  TransferId Add(std::unique_ptr<Transfer> transfer, uint32_t steps_ready = 0);
  void Run();
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !runnable_.empty();
  }
  // The next transfer that can go on; waits for one. Nothing when no other will come.
  std::optional<Work> TakeWork();
  // After its call: whether there is something new to poll.
  bool Settle(Work* work, Transfer::Next next);
  void Enqueue(TransferId id, Entry* entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  CacheNodeClient* const client_;
  const Clock* const clock_;
  const AsyncOptions options_;
  EventSignal signal_;
  mutable absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t admitted_ ABSL_GUARDED_BY(mutex_) = 0;  // And not added yet.
  absl::flat_hash_map<TransferId, std::unique_ptr<Entry>> entries_ ABSL_GUARDED_BY(mutex_);
  std::deque<TransferId> runnable_ ABSL_GUARDED_BY(mutex_);
  std::deque<TransferId> news_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace cairn
