#include "common/security/audit_trail.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/security/audit.h"

namespace cairn {

AuditTrail::AuditTrail(LineLog log, const Clock* clock)
    : log_(std::move(log)), clock_(clock), filled_(clock->SteadyNow()) {}

void AuditTrail::Add(absl::string_view method, const absl::StatusOr<Caller>& caller,
                     absl::string_view about, const absl::Status& outcome) {
  if (!IsAudited(method)) return;
  const bool refused =
      !caller.ok() || absl::IsPermissionDenied(outcome) || absl::IsUnauthenticated(outcome);
  uint64_t missed = 0;
  if (refused && !TakeRefused(&missed)) return;
  if (log_ == nullptr) return;
  if (missed > 0) log_(absl::StrCat("audit: ", missed, " lines of refused callers were left out"));
  log_(AuditLine(method, caller, about, outcome));
}

bool AuditTrail::TakeRefused(uint64_t* missed) {
  const absl::Time now = clock_->SteadyNow();
  absl::MutexLock lock(&mutex_);
  refused_left_ = std::min(
      kRefusedBurst, refused_left_ + kRefusedPerSecond * absl::ToDoubleSeconds(now - filled_));
  filled_ = now;
  if (refused_left_ < 1) {
    ++left_out_;
    return false;
  }
  refused_left_ -= 1;
  *missed = left_out_ - std::exchange(said_, left_out_);
  return true;
}

uint64_t AuditTrail::left_out() const {
  absl::MutexLock lock(&mutex_);
  return left_out_;
}

}  // namespace cairn
