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
  kSession,     // The session's last prompt went there, and that decided.
};

absl::string_view RouteReasonName(RouteReason reason);

// What the place of a replica was made of, so that a decision can be explained later. All in
// seconds but the last.
struct RouteTerms {
  double queued_seconds = 0;         // Until what is queued there is computed.
  double compute_seconds = 0;        // Of what is missing there.
  double fetch_seconds = 0;          // Of what is cached.
  double expected_ttft_seconds = 0;  // The sum of these three.
  // By which the default policy counts the queue longer.
  double ramp_seconds = 0;     // It is new.
  double label_seconds = 0;    // It lacks labels that the request prefers.
  double session_seconds = 0;  // Negative: the session is here.
  double trust = 1;            // Share of its own matched tokens that is counted on.

  friend bool operator==(const RouteTerms&, const RouteTerms&) = default;
};

struct RankedChoice {
  size_t replica = 0;  // Index in the snapshot.
  double score = 0;    // In the policy's unit: less is better.
  RouteTerms terms;
  RouteReason reason = RouteReason::kLoad;

  friend bool operator==(const RankedChoice&, const RankedChoice&) = default;
};

class RoutePolicy {
 public:
  virtual ~RoutePolicy() = default;

  virtual absl::string_view name() const = 0;
  // What its scores are in.
  virtual absl::string_view score_unit() const = 0;
  // Every replica of the snapshot once, best first; those that are not available last. Of those
  // that are, where there is a deadline, the ones that are not expected to make it after the
  // others, and the least expected time first among them.
  virtual std::vector<RankedChoice> Rank(const RouteSnapshot& snapshot) const = 0;
};

}  // namespace cairn::router
