// RpcMetrics: how many calls of each method ended with which code, how long they took, and how many
// run.
//
// All series are made at construction: methods and codes are fixed sets. Thread-safe. The Metrics
// and the clock must outlive it.
#pragma once

#include <array>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/metrics/metrics.h"

namespace cairn::node {

// The methods of cairn.v1.CacheNode.
enum class RpcMethod : size_t {
  kRegisterNamespace,
  kRetireNamespace,
  kClearScope,
  kPurgeWriter,
  kLookup,
  kGetLease,
  kRenewLease,
  kEndLease,
  kGet,
  kReserve,
  kWrite,
  kCommit,
  kAbort,
  kReportMismatch,
  kDelete,
  kPinBlocks,
  kWatchBlocks,
  kDescribe,
  kUnknown,  // A name that the service does not have.
};
inline constexpr size_t kRpcMethodCount = 19;

absl::string_view RpcMethodName(RpcMethod method);

class RpcMetrics {
 public:
  RpcMetrics(Metrics* metrics, const Clock* clock);

  RpcMetrics(const RpcMetrics&) = delete;
  RpcMetrics& operator=(const RpcMetrics&) = delete;

  // One call under way. Move-only; End once. One that is only destroyed counts as cancelled.
  class Call {
   public:
    Call() = default;
    Call(RpcMetrics* metrics, RpcMethod method, absl::Time start)
        : metrics_(metrics), method_(method), start_(start) {}
    Call(Call&& other) noexcept { *this = std::move(other); }
    Call& operator=(Call&& other) noexcept {
      End(absl::StatusCode::kCancelled);
      metrics_ = std::exchange(other.metrics_, nullptr);
      method_ = other.method_;
      start_ = other.start_;
      return *this;
    }
    ~Call() { End(absl::StatusCode::kCancelled); }

    void End(absl::StatusCode code);

   private:
    RpcMetrics* metrics_ = nullptr;
    RpcMethod method_ = RpcMethod::kUnknown;
    absl::Time start_;
  };

  Call Begin(RpcMethod method);

 private:
  static constexpr size_t kCodeCount = 17;

  struct OfMethod {
    std::array<Counter, kCodeCount> ended;
    Gauge running;
    Histogram seconds;
  };

  const Clock* const clock_;
  std::array<OfMethod, kRpcMethodCount> methods_;
};

}  // namespace cairn::node
