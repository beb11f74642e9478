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

// How far what the index has of a replica is counted on.
struct TrustOptions {
  // Some records are lost and not yet sent again: with 5 % of the batches lost for good, 0.242 was
  // left of a hit rate of 0.306 (conversation trace).
  double recovering = 0.8;
  // Silent for a second: it speaks again or is gone, and nothing says which.
  double degraded = 0.5;
  // The most that the learned stale share takes away. Not all: a replica that gets no prefix any
  // more could not show that it delivers again, and reports can be wrong.
  double stale_share_most = 0.5;
};

// Share of the tokens that its own node was said to have, 0 to 1.
double TrustOf(const ReplicaView& replica, const TrustOptions& options);
// Of its own tokens, those that are counted on; what booked requests write there by stale share
// alone, since this router sent them itself.
double TrustedTokens(const ReplicaView& replica, const TrustOptions& options);

// Compute, fetch and expected time to first token after a queue of `queued_seconds`. What is not
// trusted is computed, and so is what a tier gives no faster.
RouteTerms TermsOf(const RouteSnapshot& snapshot, const ReplicaView& replica, double queued_seconds,
                   const TrustOptions& options = {});

// Least score first; equal ones in an order that is fresh for each prompt; replicas that are not
// available after all others, and those that miss the deadline before them. `scores`: one for each
// replica of the snapshot.
std::vector<RankedChoice> RankByScore(const RouteSnapshot& snapshot,
                                      absl::Span<const double> scores);

// Moves the available ones that are not expected to make the snapshot's deadline after those that
// are, the least expected time first. Those that are not available come last in `ranked` already.
void PutLateOnesAfter(const RouteSnapshot& snapshot, std::vector<RankedChoice>* ranked);

// Seconds until what is booked there is computed, at the replica's own rate.
double QueuedPrefillSeconds(const ReplicaView& replica);

// Of the prompt, that its own node does not have and no booked request is writing there.
uint64_t MissingTokens(const RouteSnapshot& snapshot, const ReplicaView& replica);

// Where hashing puts the prompt: of its first blocks (RendezvousPrompt), at random where it has
// no full block.
uint64_t PlaceOf(const RouteSnapshot& snapshot);

}  // namespace cairn::router
