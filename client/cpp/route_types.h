// What a client asks a router, and what it answers. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "cairn/v1/block.pb.h"
#include "cairn/v1/feed.pb.h"
#include "cairn/v1/router.pb.h"
#include "common/base/bytes16.h"
#include "common/rpc/labels.h"

namespace cairn {

// What one router gave for a routed request; only that run of it knows it.
using RouteBookingId = Bytes16<struct RouteBookingTag>;

struct RouteBooking {
  RouteBookingId id;
  Incarnation router_incarnation;

  friend bool operator==(const RouteBooking&, const RouteBooking&) = default;
};

struct RouteOptions {
  // Tokens of the whole prompt; 0: those of its regions, or of its blocks when it has only keys.
  uint64_t prompt_tokens = 0;
  // That the answer may take; 0: not known.
  uint32_t output_tokens = 0;
  // Send tokens instead of keys, which the router then hashes itself. Without a full block tokens
  // are sent anyway.
  bool by_tokens = false;
  // Name of the router's policy that ranks for this prompt; empty: the router's own.
  std::string policy = {};
  // That the prompts of one conversation share; empty: none. Bounds of these: route_limits.h.
  std::string session_id = {};
  std::vector<Label> required_labels = {};
  // Seconds by which a replica without the label stands as if its queue were longer.
  std::vector<std::pair<Label, double>> preferred_labels = {};
  // Workers that are not to be answered.
  std::vector<std::string> excluded_workers = {};
  // Until the first token, sent in whole ms; zero: whenever.
  absl::Duration deadline = absl::ZeroDuration();
  // Zero takes the client's timeout.
  absl::Duration timeout = absl::ZeroDuration();
};

struct TierTokensMatched {
  v1::Tier tier = v1::TIER_UNSPECIFIED;
  uint64_t tokens = 0;
};

struct RoutedReplica {
  // The model worker.
  std::string worker_address;
  // The cache node beside it, and where clients reach that.
  std::string node_id;
  std::vector<std::string> node_addresses;
  // Consecutive tokens from the start that its own node holds, by tier, fastest first.
  std::vector<TierTokensMatched> matched;
  // Tokens after those that requests routed before are about to write there.
  uint64_t coming_tokens = 0;
  // How many more another node has, where the worker can read from there, and its id.
  uint64_t remote_tokens = 0;
  std::string remote_node_id;
  // By the router's policy, in RouteAnswer::score_unit: less is better.
  double score = 0;
  double queued_seconds = 0;
  v1::RouteReason reason = v1::ROUTE_REASON_UNSPECIFIED;
  // What its place was made of.
  v1::RouteTerms terms;
  // Of its node.
  v1::HolderState holder_state = v1::HOLDER_STATE_UNSPECIFIED;

  uint64_t MatchedTokens() const {
    uint64_t tokens = 0;
    for (const TierTokensMatched& tier : matched) tokens += tier.tokens;
    return tokens;
  }
};

struct RouteAnswer {
  // Best first, never empty: fall back along it. The booking stands for the first.
  std::vector<RoutedReplica> replicas;
  RouteBooking booking;
  // Ranked by load alone: no holder lives, or none knows the namespace.
  bool degraded = false;
  // No replica is expected to make the deadline.
  bool deadline_at_risk = false;
  // That ranked, and what its scores are in.
  std::string policy;
  std::string score_unit;
};

struct HolderPrefix {
  std::string node_id;
  std::vector<std::string> node_addresses;
  v1::HolderState state = v1::HOLDER_STATE_UNSPECIFIED;
  // Consecutive blocks from the start, and their tokens by tier.
  uint32_t blocks = 0;
  std::vector<TierTokensMatched> matched;
};

struct PrefixAnswer {
  bool namespace_known = false;
  // Full blocks of the prompt.
  uint32_t blocks_total = 0;
  // Those that have a block, longest first.
  std::vector<HolderPrefix> holders;
};

struct RouteOutcome {
  RouteBooking booking;
  v1::OutcomePhase phase = v1::OUTCOME_PHASE_END;
  // Replica that took it, when it was not the first; else empty.
  std::string worker_address = {};
  // Prompt tokens that came from a cache, and that were computed.
  uint64_t cached_tokens = 0;
  uint64_t computed_tokens = 0;
  // Of that computation; zero: not measured.
  absl::Duration compute = absl::ZeroDuration();
  // At the end: tokens generated, and of them those that cache nodes attended for; how often the
  // request was preempted, and how often a cache node had no room for it.
  uint64_t output_tokens = 0;
  uint64_t served_tokens = 0;
  uint32_t preemptions = 0;
  uint32_t refusals = 0;
  // Zero takes the client's timeout.
  absl::Duration timeout = absl::ZeroDuration();
};

struct ReplicaEntry {
  std::string worker_address;
  std::string node_id;
  std::vector<std::string> node_addresses;
  v1::HolderState state = v1::HOLDER_STATE_UNSPECIFIED;
  std::optional<Incarnation> incarnation;
  // That the router's index has of its node.
  uint64_t blocks = 0;
  // Booked there and not ended.
  uint64_t prefill_tokens = 0;
  uint64_t kv_tokens = 0;
  uint64_t requests = 0;
  double prefill_tokens_per_second = 0;
  // Share of recently predicted tokens that its cache did not deliver.
  double stale_share = 0;
  // Another node that says its id or names its worker; empty when there is none.
  std::string conflict;
  // Of its node.
  std::vector<Label> labels;
  // KV tokens that its own memory holds; 0: not known.
  uint64_t kv_tokens_max = 0;
  // Draining ones get nothing new.
  v1::DrainState drain_state = v1::DRAIN_STATE_UNSPECIFIED;
};

// A followed address, whatever stands there.
struct HolderEntry {
  std::string address;
  v1::HolderState state = v1::HOLDER_STATE_UNSPECIFIED;
  std::string node_id;
  // Why its last feed ended; empty while one runs.
  std::string error;
  // Leaves or is not ready, as the router's source of nodes says.
  bool held_back = false;
};

// Where the router learns which nodes there are (router.proto).
struct MembershipEntry {
  std::string source;
  uint32_t nodes = 0;
  std::string error;
};

struct ReplicaList {
  std::vector<ReplicaEntry> replicas;
  std::vector<HolderEntry> holders;
  Incarnation router_incarnation;
  bool ready = false;
  // Ready without all that it waited for.
  bool degraded = false;
  MembershipEntry membership;
};

}  // namespace cairn
