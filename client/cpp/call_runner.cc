#include "client/cpp/call_runner.h"

#include <grpc/support/time.h>

#include "common/base/check.h"
#include "common/rpc/retry_status.h"

namespace cairn {

CallRunner::CallRunner(const RetryOptions& options, const Clock* clock, RandomSource* random,
                       RetryWait* wait)
    : policy_(options, random), clock_(clock), wait_(wait) {}

absl::Status CallRunner::Run(absl::Duration timeout, const RetryRules& rules, Call call) const {
  CAIRN_CHECK(timeout > absl::ZeroDuration());
  const absl::Time deadline = clock_->SteadyNow() + timeout;
  Attempt attempt{.remaining = timeout, .new_request_id = true};
  for (uint32_t made = 1;; ++made) {
    absl::Status status = call(attempt);
    if (status.ok()) return status;
    const RetryDecision decision =
        policy_.AfterFailure({.status = status,
                              .retry_after = RetryAfter(status),
                              .attempt = made,
                              .remaining = deadline - clock_->SteadyNow()},
                             rules);
    if (!decision.retry || !wait_->WaitFor(decision.wait)) return status;
    attempt = {.remaining = deadline - clock_->SteadyNow(),
               .new_request_id = decision.new_request_id};
    if (attempt.remaining <= absl::ZeroDuration()) return status;
  }
}

void SetDeadline(absl::Duration remaining, grpc::ClientContext* context) {
  context->set_deadline(
      gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                   gpr_time_from_nanos(absl::ToInt64Nanoseconds(remaining), GPR_TIMESPAN)));
}

}  // namespace cairn
