// RetryPolicy: whether a failed call may be made again, and when.
//
// A pure function of the failure and of its options, but for the jitter, which comes from the
// random source. It knows no clock and does not wait (retry_wait.h does). Thread-safe as its random
// source is.
//
//  - UNAVAILABLE of a call that is safe to repeat: again, under the same request id, after a
//  growing
//    wait; not where its reason says that the request itself leaves nobody (kAllReplicasExcluded).
//  - RESOURCE_EXHAUSTED that says how long to wait (google.rpc.RetryInfo): again under a new
//  request
//    id, when the caller opted in.
//  - anything else, too many attempts, or a wait that would reach past the deadline: not again.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/random_source.h"

namespace cairn {

inline constexpr uint32_t kRetryAttemptsMax = 100;

struct RetryOptions {
  // Calls in all, the first included; 1 to kRetryAttemptsMax.
  uint32_t attempts_max = 5;
  // Wait after the first failure; each later one doubles it, up to the bound.
  absl::Duration backoff_initial = absl::Milliseconds(50);
  absl::Duration backoff_max = absl::Seconds(2);
};

// INVALID_ARGUMENT naming the option that is out of its range, as "retry.attempts_max".
absl::Status ValidateRetryOptions(const RetryOptions& options);

// The request itself leaves nobody who could serve it (kAllReplicasExcluded).
bool LeavesNobody(const absl::Status& status);

// One failed attempt.
struct FailedAttempt {
  absl::Status status;
  // What the server asked to wait, when it said so.
  std::optional<absl::Duration> retry_after;
  // 1 for the first.
  uint32_t attempt = 1;
  // Left until the call's deadline.
  absl::Duration remaining = absl::ZeroDuration();
};

// What the caller of a call allows.
struct RetryRules {
  // The same request twice has the effect of once (reads; calls with a request id).
  bool idempotent = true;
  // Also wait for space or quota when refused.
  bool wait_when_exhausted = false;
};

struct RetryDecision {
  bool retry = false;
  absl::Duration wait = absl::ZeroDuration();
  // The next attempt is another request, with an id of its own.
  bool new_request_id = false;
};

class RetryPolicy {
 public:
  // Borrows `random`, which outlives it. REQUIRES: options within their bounds, backoffs positive.
  RetryPolicy(const RetryOptions& options, RandomSource* random);

  RetryDecision AfterFailure(const FailedAttempt& failed, const RetryRules& rules) const;

 private:
  // Between half of `wait` and all of it, so that clients that failed together do not return so.
  absl::Duration Jittered(absl::Duration wait) const;
  absl::Duration Backoff(uint32_t attempt) const;

  RetryOptions options_;
  RandomSource* random_;
};

}  // namespace cairn
