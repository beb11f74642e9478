// What RouterCore is asked and what it answers. Values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cairn/v1/feed.pb.h"
#include "common/base/bytes16.h"
#include "common/identity/fingerprint.h"
#include "common/rpc/labels.h"
#include "router/booking/booking_ledger.h"
#include "router/feed/holder_state.h"
#include "router/ids.h"
#include "router/policy/route_policy.h"

namespace cairn::router {

// Tokens of consecutive blocks from a prompt's first: those fed, by fastest tier, and those that a
// request which was routed before is about to write.
struct MatchedTokens {
  ByTier<uint64_t> fed{};
  uint64_t coming = 0;

  uint64_t total() const {
    uint64_t tokens = coming;
    for (const uint64_t in_tier : fed) tokens += in_tier;
    return tokens;
  }
};

// A replica without the label stands as if its queue were so many seconds longer.
struct PreferredLabel {
  Label label;
  double seconds = 0;

  friend bool operator==(const PreferredLabel&, const PreferredLabel&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const PreferredLabel& wish) {
    return H::combine(std::move(state), wish.label, wish.seconds);
  }
};

struct RouteQuery {
  // Whose request ids these are.
  absl::string_view caller;
  // The caller's own tenant, resolved from its identity.
  absl::string_view tenant;
  Fingerprint fingerprint;
  // Of the prompt's full blocks.
  absl::Span<const BlockKey> keys;
  // Of the whole prompt; 0: those of the full blocks.
  uint64_t prompt_tokens = 0;
  // That the answer may take; 0: not known.
  uint64_t output_tokens = 0;
  // Ranks for this prompt; null: the router's own. Outlives the call.
  const RoutePolicy* policy = nullptr;
  // Makes a retry get the same answer; may be empty.
  absl::string_view request_id;
  // Stands for all that was asked, for telling a retry from another request: the keys may differ
  // when the namespace became known in between. 0: the fields of this say it.
  uint64_t request_digest = 0;
  // That the prompts of one conversation share, within the tenant; empty: none.
  absl::string_view session = {};
  // Only replicas beside nodes that have all of these.
  absl::Span<const Label> required_labels = {};
  absl::Span<const PreferredLabel> preferred_labels = {};
  // Workers that are not to be answered; those that are not known do not matter.
  absl::Span<const absl::string_view> excluded_workers = {};
  // The first token is wanted within so long.
  std::optional<absl::Duration> deadline = std::nullopt;
};

struct RankedReplica {
  std::string worker_address;
  std::string node_id;
  std::vector<std::string> node_addresses;
  MatchedTokens matched;
  // How many more tokens another holder has, where the worker can read from there.
  uint64_t remote_tokens = 0;
  std::string remote_node_id;
  HolderState holder_state = HolderState::kOut;
  double score = 0;
  RouteTerms terms;
  RouteReason reason = RouteReason::kLoad;
};

struct RouteAnswer {
  std::vector<RankedReplica> replicas;  // Best first; the booking stands for the first.
  BookingId booking;
  // Ranked by bookings alone: no holder lives, or none knows the namespace.
  bool degraded = false;
  // No replica is expected to make the deadline.
  bool deadline_at_risk = false;
  // That ranked, and what its scores are in.
  std::string policy;
  std::string score_unit;
};

struct HolderMatch {
  std::string node_id;
  std::vector<std::string> node_addresses;
  HolderState state = HolderState::kOut;
  uint32_t blocks = 0;
  MatchedTokens matched;
};

struct LookupAnswer {
  bool namespace_known = false;
  std::vector<HolderMatch> holders;  // Longest first; only those that have a block.
};

struct OutcomeReport {
  BookingId booking;
  Incarnation router_incarnation;
  OutcomePhase phase = OutcomePhase::kEnd;
  // Who took it, when it was not the first; else empty.
  absl::string_view worker_address;
  uint64_t cached_tokens = 0;
  uint64_t computed_tokens = 0;
  double compute_seconds = 0;  // 0: not measured.
  Decoded decoded = {};        // Counted at the end alone.
  // Whom the reporter may act for: another tenant's booking is as unknown as one that never was.
  // Nothing: for all.
  std::optional<std::vector<absl::string_view>> tenants = std::nullopt;
};

struct ReplicaStatus {
  std::string worker_address;
  std::string node_id;
  std::vector<std::string> node_addresses;
  HolderState state = HolderState::kOut;
  std::optional<Incarnation> incarnation;
  uint64_t blocks = 0;
  ReplicaLoad load;
  double prefill_tokens_per_second = 0;
  // Share of recently predicted tokens that its cache did not deliver.
  double stale_share = 0;
  // Another node that says its id or names its worker; empty when there is none.
  std::string conflict;
  // Of its node.
  std::vector<Label> labels;
  // Of the worker's own memory; nothing where it is not known.
  std::optional<uint64_t> kv_tokens_max;
  // Of its node, as last heard; draining also while it is held back.
  v1::DrainState drain_state = v1::DRAIN_STATE_UNSPECIFIED;
};

}  // namespace cairn::router
