// AuditTrail: where audit lines go, so that who is refused cannot fill the log.
//
// A call that was allowed always leaves its line. Those of refused callers are bounded by a rate;
// what is left out is counted, and said with the next line of a refused caller. Thread-safe; the
// log is called with no lock held. Borrows the clock, which outlives it.
#pragma once

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/rpc/caller_identity.h"
#include "common/server/line_log.h"

namespace cairn {

class AuditTrail {
 public:
  // Lines of refused callers: so many at once, and then so many a second.
  static constexpr double kRefusedBurst = 100;
  static constexpr double kRefusedPerSecond = 10;

  // `log` may be null.
  AuditTrail(LineLog log, const Clock* clock);

  // As AuditLine (audit.h); nothing for a method that leaves no lines.
  void Add(absl::string_view method, const absl::StatusOr<Caller>& caller, absl::string_view about,
           const absl::Status& outcome) ABSL_LOCKS_EXCLUDED(mutex_);

  // Lines since the start that the rate did not let through.
  uint64_t left_out() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Whether one more line of a refused caller goes; `missed`: how many did not since the last.
  bool TakeRefused(uint64_t* missed) ABSL_LOCKS_EXCLUDED(mutex_);

  const LineLog log_;
  const Clock* const clock_;
  mutable absl::Mutex mutex_;
  double refused_left_ ABSL_GUARDED_BY(mutex_) = kRefusedBurst;
  absl::Time filled_ ABSL_GUARDED_BY(mutex_);
  uint64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t said_ ABSL_GUARDED_BY(mutex_) = 0;  // Of those left out.
};

}  // namespace cairn
