#include "cache_node/tenants/tenant_rates.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/rpc/retry_status.h"

namespace cairn::node {
namespace {

constexpr char kSharedByTheRest[] = "";  // No tenant is called so.

// What a second brings, so far as it fits into a bucket of one second.
double Filled(double left, double per_second, absl::Duration since) {
  return std::min(per_second, left + per_second * absl::ToDoubleSeconds(since));
}

// Until `left` is above zero again; a millisecond at least.
absl::Duration WaitFor(double left, uint64_t per_second) {
  if (per_second == 0) return absl::Seconds(1);
  const absl::Duration wait = absl::Seconds((1 - left) / static_cast<double>(per_second));
  return std::clamp(wait, absl::Milliseconds(1), kRetryDelayMax);
}

}  // namespace

void TenantRates::SetLimits(TenantRateLimits limits) {
  absl::MutexLock lock(&mutex_);
  limits_ = std::move(limits);
}

// Tenants whose buckets are full are as those never seen.
void TenantRates::DropFull(absl::Time now) {
  absl::erase_if(buckets_, [now](const auto& entry) {
    return now - std::min(entry.second.requests.filled, entry.second.bytes.filled) >
               absl::Seconds(1) &&
           entry.second.requests.left >= 0 && entry.second.bytes.left >= 0;
  });
}

TenantRates::Buckets* TenantRates::Of(absl::string_view tenant, const TenantRate& rate,
                                      absl::Time now) {
  auto it = buckets_.find(tenant);
  if (it == buckets_.end()) {
    if (buckets_.size() >= kTenantsMax) DropFull(now);
    if (buckets_.size() >= kTenantsMax) tenant = kSharedByTheRest;
    const Buckets full{{static_cast<double>(rate.requests_per_second), now},
                       {static_cast<double>(rate.bytes_per_second), now}};
    it = buckets_.try_emplace(tenant, full).first;
  }
  const auto fill = [now](Bucket* bucket, uint64_t per_second) {
    bucket->left = Filled(bucket->left, static_cast<double>(per_second), now - bucket->filled);
    bucket->filled = now;
  };
  fill(&it->second.requests, rate.requests_per_second);
  fill(&it->second.bytes, rate.bytes_per_second);
  return &it->second;
}

absl::Status TenantRates::Admit(absl::string_view tenant) {
  const absl::Time now = clock_->SteadyNow();
  absl::MutexLock lock(&mutex_);
  const TenantRate& rate = limits_.Of(tenant);
  if (!rate.limited()) return absl::OkStatus();
  Buckets* buckets = Of(tenant, rate, now);
  const bool requests = buckets->requests.left < 1;
  if (!requests && buckets->bytes.left > 0) {
    buckets->requests.left -= 1;
    return absl::OkStatus();
  }
  ++(requests ? refused_.over_requests : refused_.over_bytes);
  const absl::Duration wait = requests ? WaitFor(buckets->requests.left, rate.requests_per_second)
                                       : WaitFor(buckets->bytes.left, rate.bytes_per_second);
  return WithRetryAfter(absl::ResourceExhaustedError(
                            requests ? absl::StrCat("tenant ", tenant, ": over its ",
                                                    rate.requests_per_second, " requests a second")
                                     : absl::StrCat("tenant ", tenant, ": over its ",
                                                    rate.bytes_per_second, " bytes a second")),
                        wait);
}

void TenantRates::Charge(absl::string_view tenant, uint64_t bytes) {
  const absl::Time now = clock_->SteadyNow();
  absl::MutexLock lock(&mutex_);
  const TenantRate& rate = limits_.Of(tenant);
  if (rate.bytes_per_second == TenantRate::kUnlimited) return;
  Of(tenant, rate, now)->bytes.left -= static_cast<double>(bytes);
}

TenantRates::Refused TenantRates::refused() const {
  absl::MutexLock lock(&mutex_);
  return refused_;
}

}  // namespace cairn::node
