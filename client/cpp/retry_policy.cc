#include "client/cpp/retry_policy.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/rpc/error_reason.h"
#include "common/wire/route_limits.h"

namespace cairn {

bool LeavesNobody(const absl::Status& status) {
  if (!absl::IsUnavailable(status)) return false;
  const std::optional<ErrorReason> reason = ReasonOf(status);
  return reason.has_value() && reason->reason == kAllReplicasExcluded;
}

absl::Status ValidateRetryOptions(const RetryOptions& options) {
  if (options.attempts_max < 1 || options.attempts_max > kRetryAttemptsMax) {
    return absl::InvalidArgumentError(absl::StrCat("retry.attempts_max: ", options.attempts_max,
                                                   "; must be 1 to ", kRetryAttemptsMax));
  }
  if (options.backoff_initial <= absl::ZeroDuration() ||
      options.backoff_max < options.backoff_initial) {
    return absl::InvalidArgumentError(
        "retry.backoff_initial must be positive and at most retry.backoff_max");
  }
  return absl::OkStatus();
}

RetryPolicy::RetryPolicy(const RetryOptions& options, RandomSource* random)
    : options_(options), random_(random) {
  CAIRN_CHECK_OK(ValidateRetryOptions(options));
  CAIRN_CHECK(random != nullptr);
}

absl::Duration RetryPolicy::Jittered(absl::Duration wait) const {
  uint8_t dice = 0;
  random_->Fill(&dice, 1);
  return wait / 2 + wait / 2 * (dice / 255.0);
}

absl::Duration RetryPolicy::Backoff(uint32_t attempt) const {
  absl::Duration wait = options_.backoff_initial;
  for (uint32_t i = 1; i < attempt && wait < options_.backoff_max; ++i) wait *= 2;
  return std::min(wait, options_.backoff_max);
}

RetryDecision RetryPolicy::AfterFailure(const FailedAttempt& failed,
                                        const RetryRules& rules) const {
  CAIRN_CHECK(!failed.status.ok() && failed.attempt >= 1);
  if (failed.attempt >= options_.attempts_max) return {};
  RetryDecision decision;
  if (LeavesNobody(failed.status)) return {};
  if (absl::IsUnavailable(failed.status) && rules.idempotent) {
    decision.retry = true;
    decision.wait = Jittered(Backoff(failed.attempt));
    if (failed.retry_after) decision.wait = std::max(decision.wait, *failed.retry_after);
  } else if (absl::IsResourceExhausted(failed.status) && rules.wait_when_exhausted &&
             failed.retry_after) {
    decision.retry = true;
    decision.new_request_id = true;
    // Never sooner than the server said; what is added spreads those that were refused together.
    decision.wait =
        std::max(*failed.retry_after, absl::ZeroDuration()) + Jittered(options_.backoff_initial);
  }
  if (decision.retry && decision.wait >= failed.remaining) return {};
  return decision;
}

}  // namespace cairn
