// TenantRates: how many requests and payload bytes a second each tenant may ask a node for.
//
// Two token buckets a tenant, each of one second's worth. A request is admitted while both are
// above zero, and bytes are charged when they are known, so a large transfer may go into debt: what
// comes after it waits. Tenants without a limit are not looked at. Thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace cairn::node {

struct TenantRate {
  static constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();
  uint64_t requests_per_second = kUnlimited;
  uint64_t bytes_per_second = kUnlimited;

  bool limited() const {
    return requests_per_second != kUnlimited || bytes_per_second != kUnlimited;
  }
  friend bool operator==(const TenantRate&, const TenantRate&) = default;
};

struct TenantRateLimits {
  TenantRate others;  // Of each tenant that is not named.
  absl::flat_hash_map<std::string, TenantRate> named;

  const TenantRate& Of(absl::string_view tenant) const {
    const auto it = named.find(tenant);
    return it == named.end() ? others : it->second;
  }
};

class TenantRates {
 public:
  // More tenants than this at once share one pair of buckets.
  static constexpr size_t kTenantsMax = 65536;

  // Borrows the clock, which outlives it.
  explicit TenantRates(const Clock* clock) : clock_(clock) {}

  // Replaces those before; what was used of a tenant's second stays used.
  void SetLimits(TenantRateLimits limits);

  // One request of the tenant. RESOURCE_EXHAUSTED with the wait, and nothing is taken.
  absl::Status Admit(absl::string_view tenant);
  // Bytes that a request of the tenant moves.
  void Charge(absl::string_view tenant, uint64_t bytes);

  // Requests since the start, by what they were over.
  struct Refused {
    uint64_t over_requests = 0;
    uint64_t over_bytes = 0;
  };
  Refused refused() const;

 private:
  struct Bucket {
    double left = 0;
    absl::Time filled;
  };
  struct Buckets {
    Bucket requests;
    Bucket bytes;
  };

  Buckets* Of(absl::string_view tenant, const TenantRate& rate, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropFull(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock* const clock_;
  mutable absl::Mutex mutex_;
  TenantRateLimits limits_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, Buckets> buckets_ ABSL_GUARDED_BY(mutex_);
  Refused refused_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn::node
