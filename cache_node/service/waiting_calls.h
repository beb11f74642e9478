// WaitingCalls: calls that wait, within a bound, for something in the store to settle.
//
// A bounded list. Each call is tried when it joins and again on each Sweep, which the owner runs
// when the store settled something or the next deadline passed (see SettledWaiter). A call is
// answered by itself in TryAnswer, or told in GiveUp why nothing more is tried: exactly one of the
// two ends it.
//
// Thread-safe: any number of threads join and cancel, one sweeps. Calls are called without the
// lock.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace cairn::node {

class WaitingCalls {
 public:
  static constexpr size_t kWaitingMax = 1024;

  enum class Reason { kDeadline, kCancelled, kStopped };

  class Call {
   public:
    virtual ~Call() = default;
    // True: it answered itself and is not called again.
    virtual bool TryAnswer() = 0;
    virtual void GiveUp(Reason reason) = 0;
  };

  using Ticket = uint64_t;

  WaitingCalls() = default;
  // No call may be left: Stop was called.
  ~WaitingCalls();

  // Joins; 0 when kWaitingMax wait or it was stopped, and `call` is left as it is. It is tried at
  // the next Sweep.
  Ticket Join(absl::Time deadline, std::unique_ptr<Call>& call) ABSL_LOCKS_EXCLUDED(mutex_);
  // GiveUp(kCancelled) comes at once, or at the end of the try under way. Nothing for an unknown
  // ticket.
  void Cancel(Ticket ticket) ABSL_LOCKS_EXCLUDED(mutex_);

  // Tries each call that was there at its begin once. Returns when the next deadline passes.
  absl::Time Sweep(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // GiveUp(kStopped) for all, and for whoever would join. Not beside a Sweep.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  size_t waiting() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    absl::Time deadline;
    std::unique_ptr<Call> call;  // Null while it is tried.
    bool cancelled = false;
  };

  // One try outside the lock; ends or keeps the call.
  void TryOne(Ticket ticket, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  mutable absl::Mutex mutex_;
  absl::btree_map<Ticket, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  Ticket next_ticket_ ABSL_GUARDED_BY(mutex_) = 1;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace cairn::node
