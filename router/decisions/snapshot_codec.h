// RouteSnapshot and a policy's answer as messages, every field of them.
//
// A member that is added to one of these structs and not here does not compile: a replay would
// decide on less than the router did. Pure functions.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "cairn/v1/decision.pb.h"
#include "router/decisions/field_check.h"
#include "router/ids.h"
#include "router/policy/route_policy.h"
#include "router/policy/route_snapshot.h"

namespace cairn::router {

// `replicas`: the ids of the snapshot's, by index.
void ToMessage(const RouteSnapshot& snapshot, const std::vector<ReplicaId>& replicas,
               v1::RouteSnapshot* message);
void ToMessage(const RankedChoice& choice, v1::RankedChoice* message);

// From outside: `check` says afterwards whether they may be used. Fewer replicas, none, where there
// are more than a router has.
RouteSnapshot SnapshotFromMessage(const v1::RouteSnapshot& message,
                                  std::vector<ReplicaId>* replicas, FieldCheck* check);
RankedChoice ChoiceFromMessage(const v1::RankedChoice& message, size_t replicas, FieldCheck* check);

}  // namespace cairn::router
