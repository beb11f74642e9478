// CallBudget: the time that the cache may take of one request, over all its calls.
//
// Only time spent in calls counts: a request that computes for a minute still has its whole budget
// for storing what it computed. Not thread-safe. Borrows the clock.
#pragma once

#include <algorithm>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace cairn {

class CallBudget {
 public:
  CallBudget(const Clock* clock, absl::Duration total) : clock_(clock), left_(total) {}

  // Makes one call, or several, with a deadline of `step` or of what is left, and takes the time
  // from the budget; it is added to `*spent` too. DEADLINE_EXCEEDED, without a call, when nothing
  // is left.
  absl::Status Spend(absl::Duration step, absl::Duration* spent,
                     absl::FunctionRef<absl::Status(absl::Duration timeout)> call) {
    const absl::Duration timeout = std::min(step, left_);
    if (timeout <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError("the cache's time for this request is used up");
    }
    const absl::Time begin = clock_->SteadyNow();
    absl::Status status = call(timeout);
    const absl::Duration took = clock_->SteadyNow() - begin;
    left_ -= took;
    *spent += took;
    return status;
  }

  absl::Duration left() const { return left_; }

 private:
  const Clock* clock_;
  absl::Duration left_;
};

}  // namespace cairn
