// Ranking by a score: what all policies do alike once each replica has one.
//
// Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "router/policy/route_policy.h"
#include "router/policy/route_snapshot.h"

namespace cairn::router {

// Least score first; equal ones in an order that is fresh for each prompt; replicas that are not
// available after all others. `scores`: one for each replica of the snapshot.
std::vector<RankedChoice> RankByScore(const RouteSnapshot& snapshot,
                                      absl::Span<const double> scores);

// Seconds until what is booked there is computed, at the replica's own rate.
double QueuedPrefillSeconds(const ReplicaView& replica);

// Of the prompt, that its own node does not have and no booked request is writing there.
uint64_t MissingTokens(const RouteSnapshot& snapshot, const ReplicaView& replica);

// Where hashing puts the prompt: of its first blocks (RendezvousPrompt), at random where it has
// no full block.
uint64_t PlaceOf(const RouteSnapshot& snapshot);

}  // namespace cairn::router
