// RoutePolicy: ranks replicas for one prompt; a pure function of the snapshot.
//
// The same code runs in the server, in simulations and in replays. A new policy is one new file
// that implements this. Thread-safe: it has no state.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/strings/string_view.h"
#include "router/policy/route_snapshot.h"

namespace cairn::router {

// Why a replica stands where it stands.
enum class RouteReason {
  kPrefix,      // By cost, with a prefix that it can read.
  kRendezvous,  // No replica has a long enough prefix: hashing chose it among the least queued.
  kLoad,        // By cost, without a prefix.
  kHolderOut,   // Its holder is out: after all others, with match 0.
};

absl::string_view RouteReasonName(RouteReason reason);

struct RankedChoice {
  size_t replica = 0;         // Index in the snapshot.
  double cost_seconds = 0;    // A score in another unit, where the policy says so: less is better.
  double queued_seconds = 0;  // Part of the cost.
  RouteReason reason = RouteReason::kLoad;
};

class RoutePolicy {
 public:
  virtual ~RoutePolicy() = default;

  virtual absl::string_view name() const = 0;
  // Every replica of the snapshot once, best first; those that are not available last.
  virtual std::vector<RankedChoice> Rank(const RouteSnapshot& snapshot) const = 0;
};

}  // namespace cairn::router
