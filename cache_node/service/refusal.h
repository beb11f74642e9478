// Refusal: a stream that says one status and ends.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "cache_node/service/rpc_metrics.h"
#include "common/rpc/status_mapping.h"

namespace cairn::node {

// `Reactor` is a server reactor class of gRPC. Owns itself until OnDone.
template <typename Reactor>
class Refusal final : public Reactor {
 public:
  Refusal(const absl::Status& status, RpcMetrics::Call call) {
    call.End(status.code());
    this->Finish(ToGrpcStatus(status));
  }
  void OnDone() override { delete this; }
};

}  // namespace cairn::node
