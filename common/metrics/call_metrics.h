// CallMetrics: how many calls of each method ended with which code, how long they took, and how
// many run.
//
// For the methods of one service, which are a fixed set, as codes are: all series are made at
// construction, as PREFIX_rpcs_total, PREFIX_rpcs_running and PREFIX_rpc_seconds. Thread-safe; a
// Call belongs to one thread at a time. Knows no RPC: whoever serves says when a call begins and
// ends. The Metrics and the clock must outlive it, and it its calls.
#pragma once

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/metrics/metrics.h"

namespace cairn {

class CallMetrics {
 public:
  // `prefix` as in "cairn_router". A method is called by its place in `methods`.
  CallMetrics(absl::string_view prefix, absl::Span<const absl::string_view> methods,
              Metrics* metrics, const Clock* clock);

  CallMetrics(const CallMetrics&) = delete;
  CallMetrics& operator=(const CallMetrics&) = delete;

  // One call under way. Move-only; one that is destroyed without End counts as cancelled.
  class Call {
   public:
    Call() = default;
    Call(Call&& other) noexcept { *this = std::move(other); }
    Call& operator=(Call&& other) noexcept {
      End(absl::StatusCode::kCancelled);
      metrics_ = std::exchange(other.metrics_, nullptr);
      method_ = other.method_;
      start_ = other.start_;
      return *this;
    }
    ~Call() { End(absl::StatusCode::kCancelled); }

    // The first time counts.
    void End(absl::StatusCode code);

   private:
    friend class CallMetrics;
    Call(const CallMetrics* metrics, size_t method, absl::Time start)
        : metrics_(metrics), method_(method), start_(start) {}

    const CallMetrics* metrics_ = nullptr;
    size_t method_ = 0;
    absl::Time start_;
  };

  // REQUIRES: method < the number of methods.
  Call Begin(size_t method) const;

 private:
  static constexpr size_t kCodeCount = 17;

  struct OfMethod {
    std::array<Counter, kCodeCount> ended;
    Gauge running;
    Histogram seconds;
  };

  const Clock* const clock_;
  std::vector<OfMethod> methods_;
};

}  // namespace cairn
