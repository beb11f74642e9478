// DecodeRpcMetrics: the calls of cairn.v1.Decode by method (call_metrics.h), as
// cairn_decode_rpcs_total and so on. Thread-safe. The Metrics and the clock must outlive it.
#pragma once

#include <array>
#include <cstddef>

#include "absl/strings/string_view.h"
#include "cache_node/service/rpc_metrics.h"
#include "common/base/clock.h"
#include "common/metrics/call_metrics.h"
#include "common/metrics/metrics.h"

namespace cairn::node {

enum class DecodeMethod : size_t {
  kAttend,
  kDecodeStream,
  kOpenSequence,
  kForkSequence,
  kTruncateSequence,
  kReleaseWindow,
  kGetSequence,
  kCloseSequences,
};
inline constexpr std::array<absl::string_view, 8> kDecodeMethodNames = {
    "Attend",           "DecodeStream",  "OpenSequence", "ForkSequence",
    "TruncateSequence", "ReleaseWindow", "GetSequence",  "CloseSequences"};

class DecodeRpcMetrics {
 public:
  DecodeRpcMetrics(Metrics* metrics, const Clock* clock)
      : calls_("cairn_decode", kDecodeMethodNames, metrics, clock) {}

  RpcMetrics::Call Begin(DecodeMethod method) { return calls_.Begin(static_cast<size_t>(method)); }

 private:
  CallMetrics calls_;
};

}  // namespace cairn::node
