// CallMetrics: how many calls of each method ended with which code, how long they took, and how
// many run.
//
// All series are made at construction: methods and codes are fixed sets. Thread-safe. The Metrics
// and the clock must outlive it.
#pragma once

#include <array>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/metrics/metrics.h"

namespace cairn::router {

// The methods of cairn.v1.Router.
enum class RouterMethod : size_t { kRoute, kLookupPrefix, kReportOutcome, kListReplicas };

class CallMetrics {
 public:
  CallMetrics(Metrics* metrics, const Clock* clock);

  CallMetrics(const CallMetrics&) = delete;
  CallMetrics& operator=(const CallMetrics&) = delete;

  // A call begins; the result goes to End, once.
  absl::Time Begin(RouterMethod method) const;
  void End(RouterMethod method, absl::Time begin, absl::StatusCode code) const;

 private:
  static constexpr size_t kMethodCount = 4;
  static constexpr size_t kCodeCount = 17;

  struct OfMethod {
    std::array<Counter, kCodeCount> ended;
    Gauge running;
    Histogram seconds;
  };

  const Clock* const clock_;
  std::array<OfMethod, kMethodCount> methods_;
};

}  // namespace cairn::router
