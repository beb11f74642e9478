// Decisions and what belongs to them as messages, and back.
//
// What comes back is from outside: INVALID_ARGUMENT names the field that no router writes, and what
// is answered is safe for any policy, with numbers in bounds and indices that there are. Pure
// functions.
#pragma once

#include "absl/status/statusor.h"
#include "cairn/v1/decision.pb.h"
#include "router/decisions/decision.h"

namespace cairn::router {

void ToMessage(const DecisionRun& run, v1::DecisionRun* message);
void ToMessage(const ReplicaNames& names, v1::ReplicaTable* message);
// Without its names: the table before it has them.
void ToMessage(const Decision& decision, v1::Decision* message);
void ToMessage(const DecisionOutcome& outcome, v1::DecisionOutcome* message);

absl::StatusOr<DecisionRun> RunFromMessage(const v1::DecisionRun& message);
absl::StatusOr<ReplicaNames> NamesFromMessage(const v1::ReplicaTable& message);
absl::StatusOr<Decision> DecisionFromMessage(const v1::Decision& message);
absl::StatusOr<DecisionOutcome> OutcomeFromMessage(const v1::DecisionOutcome& message);

}  // namespace cairn::router
