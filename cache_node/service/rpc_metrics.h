// RpcMetrics: the calls of cairn.v1.CacheNode by method (call_metrics.h), as cairn_node_rpcs_total
// and so on. Thread-safe. The Metrics and the clock must outlive it.
#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"
#include "common/base/clock.h"
#include "common/metrics/call_metrics.h"
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
  kPullBlocks,
  kDescribeBlocks,
  kExplainPrompt,
  kOpenLocal,
  kWatchBlocks,
  kDescribe,
  kUnknown,  // A name that the service does not have.
};
inline constexpr size_t kRpcMethodCount = 23;

absl::string_view RpcMethodName(RpcMethod method);

class RpcMetrics {
 public:
  using Call = CallMetrics::Call;

  RpcMetrics(Metrics* metrics, const Clock* clock);

  Call Begin(RpcMethod method) { return calls_.Begin(static_cast<size_t>(method)); }

 private:
  CallMetrics calls_;
};

}  // namespace cairn::node
