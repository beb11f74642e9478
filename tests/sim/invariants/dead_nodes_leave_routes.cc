#include "tests/sim/invariants/dead_nodes_leave_routes.h"

#include <google/protobuf/message.h>

#include "absl/strings/str_cat.h"

namespace cairn::sim {

bool DeadNodesLeaveRoutes::KnownDead(const std::string& node_id) const {
  if (now() - fleet().router_changed_at() < kOutAfter || fleet().router_stalled_within(kOutAfter)) {
    return false;
  }
  for (size_t place = 0; place < fleet().node_count(); ++place) {
    if (node_id != absl::StrCat("node-", place)) continue;
    return fleet().node(place) == nullptr && now() - fleet().node_changed_at(place) >= kOutAfter;
  }
  return false;
}

void DeadNodesLeaveRoutes::OnRouterCall(const SeenCall& call) {
  using google::protobuf::DynamicCastToGenerated;
  const auto* answer = DynamicCastToGenerated<v1::RouteResponse>(&call.response);
  if (answer == nullptr || !call.status.ok()) return;
  // What is answered again is as old as the first answer.
  const auto* request = DynamicCastToGenerated<v1::RouteRequest>(&call.request);
  if (!asked_.insert(request->request_id()).second) return;
  bool out_before = false;
  for (const v1::RankedReplica& replica : answer->replicas()) {
    const bool out = replica.reason() == v1::ROUTE_REASON_HOLDER_OUT;
    if (out_before && !out) {
      Violated(absl::StrCat(replica.node_id(), " stands behind a replica whose node is out"));
    }
    out_before = out_before || out;
    if (out && (!replica.matched().empty() || replica.coming_tokens() > 0)) {
      Violated(absl::StrCat(replica.node_id(), " is out, and something is matched there"));
    }
    if (!out && KnownDead(replica.node_id())) {
      Violated(absl::StrCat(replica.node_id(), " is dead, and still in routes"));
    }
  }
}

}  // namespace cairn::sim
