// CallRunner: makes one call as often as the retry policy says, within one deadline.
//
// Thread-safe: holds no state of a call.
#pragma once

#include <grpcpp/client_context.h>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cpp/retry_policy.h"
#include "client/cpp/retry_wait.h"
#include "common/base/clock.h"
#include "common/base/random_source.h"

namespace cairn {

class CallRunner {
 public:
  // What an attempt is told.
  struct Attempt {
    // Left until the deadline; positive.
    absl::Duration remaining;
    // Take a new request id: what is asked now is another request.
    bool new_request_id = false;
  };
  using Call = absl::FunctionRef<absl::Status(const Attempt& attempt)>;

  // Borrows all three; they outlive it.
  CallRunner(const RetryOptions& options, const Clock* clock, RandomSource* random,
             RetryWait* wait);

  // The status of the last attempt. REQUIRES: timeout > 0.
  absl::Status Run(absl::Duration timeout, const RetryRules& rules, Call call) const;

 private:
  RetryPolicy policy_;
  const Clock* clock_;
  RetryWait* wait_;
};

// Sets the deadline of a call, `remaining` from now on the steady clock.
void SetDeadline(absl::Duration remaining, grpc::ClientContext* context);

}  // namespace cairn
