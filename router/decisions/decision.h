// What a router decided, and what became of it: values.
//
// No prompt is in them: no token, no block key, no tenant, adapter or salt. Of a prompt there are
// its namespace's fingerprint, counts of tokens, and what RouteSnapshot says: hashes of its first
// blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/identity/fingerprint.h"
#include "router/booking/booking_ledger.h"
#include "router/ids.h"
#include "router/policy/prefix_cost_policy.h"
#include "router/policy/route_policy.h"
#include "router/policy/route_snapshot.h"

namespace cairn::router {

// How people call a replica and the node beside it.
struct ReplicaName {
  ReplicaId id = 0;
  std::string worker_address;
  std::string node_id;

  friend bool operator==(const ReplicaName&, const ReplicaName&) = default;
};
using ReplicaNames = std::vector<ReplicaName>;

struct Decision {
  absl::Time time;  // Wall clock, to the millisecond.
  BookingId booking;
  Fingerprint fingerprint;
  // Who ranked.
  std::string policy;
  // Ranked by bookings alone: no holder lives, or none knows the namespace.
  bool degraded = false;
  // All that the policy knew, and its answer: best first, as many as the caller was given.
  RouteSnapshot snapshot;
  std::vector<RankedChoice> ranked;
  // By the snapshot's index.
  std::vector<ReplicaId> replicas;
  // Of all replicas at that time. Shared: it changes rarely, and outlives what it was made of.
  std::shared_ptr<const ReplicaNames> names;
};

// A report on a booking, as the router took it.
struct DecisionOutcome {
  absl::Time time = {};
  BookingId booking = {};
  OutcomePhase phase = OutcomePhase::kEnd;
  // Who took it; 0 for the replica that was chosen. With `elsewhere`, none of ours.
  ReplicaId replica = 0;
  bool elsewhere = false;
  uint64_t cached_tokens = 0;
  uint64_t computed_tokens = 0;
  double compute_seconds = 0;  // 0: not measured.
  Decoded decoded = {};        // Nothing before the end.

  friend bool operator==(const DecisionOutcome&, const DecisionOutcome&) = default;
};

// What all decisions of one run of a router have in common.
struct DecisionRun {
  absl::Time started;
  // The router's own policy, and the options of all of them.
  std::string policy;
  PrefixCostOptions options;
  // Of all decisions, this share was recorded.
  double share = 1;
};

}  // namespace cairn::router
