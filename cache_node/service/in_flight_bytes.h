// InFlightBytes: the budget of payload bytes that may be on their way from the network into slots.
//
// A writer's stream asks for a message's worth of bytes before it reads the message, waits in one
// FIFO queue for as long as others hold the budget, and gives the bytes back when the message
// landed. The queue is bounded, and so is the wait; over either the stream is refused with a retry
// delay. A stream that holds bytes and sends nothing while others wait is told that it stalled.
//
// Thread-safe. Streams are called without any lock held, on the thread that made room: of another
// stream's call, or of Tick. Time passes by Tick only.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace cairn::node {

class InFlightBytes {
 public:
  struct Options {
    uint64_t bytes_max = uint64_t{64} << 20;
    size_t waiting_max = 4096;
    absl::Duration wait_max = absl::Seconds(10);
    absl::Duration stall_max = absl::Seconds(2);
    absl::Duration retry_after = absl::Milliseconds(200);
  };

  class Stream {
   public:
    virtual ~Stream() = default;
    // The answer to Acquire: exactly one of the two, unless Leave came first. Refused with
    // RESOURCE_EXHAUSTED and a retry delay.
    virtual void OnAdmitted() = 0;
    virtual void OnRefused(absl::Status status) = 0;
    // It holds bytes for too long while others wait, and should end. At most once for each Acquire;
    // may come when Release was called a moment ago. RESOURCE_EXHAUSTED with a retry delay.
    virtual void OnStalled(absl::Status status) = 0;
    // What callers may do has changed: it looks whether it may go on.
    virtual void OnRightsChanged() = 0;
  };

  struct Counts {
    uint64_t bytes = 0;  // Admitted and not released.
    size_t waiting = 0;
    // Since the start.
    uint64_t refused_queue_full = 0;
    uint64_t refused_after_wait = 0;
    uint64_t stalled = 0;
  };

  // Borrows `clock`, which must outlive it.
  InFlightBytes(const Options& options, const Clock* clock);
  // No stream may wait or hold.
  ~InFlightBytes();

  // Asks for `bytes`, of which the budget must be able to hold one. A stream waits or holds once at
  // a time. Shared, because a call to the stream may be under way when its RPC ends.
  void Acquire(std::shared_ptr<Stream> stream, uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // The same, only if they are there now and nobody waits for them: it never waits, and hears of no
  // answer. False: it does not hold them.
  bool TryAcquire(std::shared_ptr<Stream> stream, uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // True: it was waiting, does not any more, and hears nothing. False: it has or gets its answer.
  bool Leave(const Stream* stream) ABSL_LOCKS_EXCLUDED(mutex_);
  // Gives back what was admitted. REQUIRES: it holds.
  void Release(const Stream* stream) ABSL_LOCKS_EXCLUDED(mutex_);

  // Refuses who waited too long, tells who stalled. Called every few tens of milliseconds.
  void Tick() ABSL_LOCKS_EXCLUDED(mutex_);

  // Has all streams look that wait or hold.
  void RightsChanged() ABSL_LOCKS_EXCLUDED(mutex_);

  Counts counts() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    std::shared_ptr<Stream> stream;
    uint64_t bytes = 0;
    absl::Time since;  // It waits, or holds.
    bool holds = false;
    bool told_stalled = false;
  };
  using Queue = std::list<Entry>;

  // Moves from waiting to holding whom the budget allows, and returns them.
  std::vector<std::shared_ptr<Stream>> AdmitWaiting() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<std::shared_ptr<Stream>> TakeOverdue(absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<std::shared_ptr<Stream>> TellStalled(absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Refusal(absl::string_view why) const;

  const Options options_;
  const Clock* const clock_;
  mutable absl::Mutex mutex_;
  // Both in order of `since`.
  Queue waiting_ ABSL_GUARDED_BY(mutex_);
  Queue holding_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<const Stream*, Queue::iterator> entries_ ABSL_GUARDED_BY(mutex_);
  Counts counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn::node
