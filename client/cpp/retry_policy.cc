#include "client/cpp/retry_policy.h"

#include <algorithm>

#include "common/base/check.h"

namespace cairn {

RetryPolicy::RetryPolicy(const RetryOptions& options, RandomSource* random)
    : options_(options), random_(random) {
  CAIRN_CHECK(options.attempts_max >= 1 && options.attempts_max <= kRetryAttemptsMax);
  CAIRN_CHECK(options.backoff_initial > absl::ZeroDuration());
  CAIRN_CHECK(options.backoff_max >= options.backoff_initial);
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
