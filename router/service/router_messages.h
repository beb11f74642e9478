// RouterCore's values as messages of the contract.
#pragma once

#include "cairn/v1/router.pb.h"
#include "router/core/router_types.h"
#include "router/feed/holder_state.h"

namespace cairn::router {

v1::HolderState ToMessage(HolderState state);
void ToMessage(const RouteAnswer& answer, const Incarnation& router, v1::RouteResponse* message);
// Of a prompt with `blocks` full blocks.
void ToMessage(const LookupAnswer& answer, size_t blocks, v1::LookupPrefixResponse* message);
void ToMessage(const ReplicaStatus& status, v1::ReplicaInfo* message);

}  // namespace cairn::router
