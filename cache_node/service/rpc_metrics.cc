#include "cache_node/service/rpc_metrics.h"

#include <array>

namespace cairn::node {
namespace {

constexpr std::array<absl::string_view, kRpcMethodCount> kNames = {"RegisterNamespace",
                                                                   "RetireNamespace",
                                                                   "ClearScope",
                                                                   "PurgeWriter",
                                                                   "Lookup",
                                                                   "GetLease",
                                                                   "RenewLease",
                                                                   "EndLease",
                                                                   "Get",
                                                                   "Reserve",
                                                                   "Write",
                                                                   "Commit",
                                                                   "Abort",
                                                                   "ReportMismatch",
                                                                   "Delete",
                                                                   "PinBlocks",
                                                                   "PullBlocks",
                                                                   "DescribeBlocks",
                                                                   "ExplainPrompt",
                                                                   "OpenLocal",
                                                                   "WatchBlocks",
                                                                   "Describe",
                                                                   "unknown"};

}  // namespace

absl::string_view RpcMethodName(RpcMethod method) { return kNames[static_cast<size_t>(method)]; }

RpcMetrics::RpcMetrics(Metrics* metrics, const Clock* clock)
    : calls_("cairn_node", kNames, metrics, clock) {}

}  // namespace cairn::node
