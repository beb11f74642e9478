#include "router/service/router_metrics.h"

#include <array>
#include <string>

namespace cairn::router {
namespace {

using Counters = RouterCore::Counters;

std::vector<CallbackSample> HoldersByState(const RouterCore& core) {
  constexpr std::array<HolderState, 4> kStates = {HolderState::kOut, HolderState::kDegraded,
                                                  HolderState::kRecovering, HolderState::kExact};
  std::vector<CallbackSample> samples;
  for (const HolderState state : kStates) {
    samples.push_back({std::string(HolderStateName(state)), 0});
  }
  for (const HolderState state : core.HolderStates()) {
    for (size_t i = 0; i < kStates.size(); ++i) {
      if (kStates[i] == state) samples[i].value += 1;
    }
  }
  return samples;
}

}  // namespace

RouterMetrics::RouterMetrics(Metrics* metrics, RouterCore* core, const NodeFollowers* followers,
                             const ChangingStarts* changing_starts, const MemberSource* members,
                             const DecisionRecorder* recorder) {
  AddCounters(metrics, core);
  AddState(metrics, core);
  AddFeeds(metrics, followers);
  AddChangingStarts(metrics, changing_starts);
  if (members != nullptr) AddMembers(metrics, members);
  if (recorder != nullptr) AddRecording(metrics, recorder);
}

void RouterMetrics::AddChangingStarts(Metrics* metrics, const ChangingStarts* changing_starts) {
  callbacks_.push_back(metrics->AddCallback(
      CallbackKind::kCounter, "cairn_router_changing_starts_total",
      "Prompts of which nothing was cached and whose first block differs from an earlier one's in "
      "a "
      "few tokens alone: a timestamp or an id at the start of prompts.",
      [changing_starts] { return static_cast<double>(changing_starts->prompts()); }));
}

void RouterMetrics::AddCounters(Metrics* metrics, const RouterCore* core) {
  const auto add = [&](absl::string_view name, absl::string_view help,
                       uint64_t (*value)(const Counters&)) {
    callbacks_.push_back(metrics->AddCallback(CallbackKind::kCounter, name, help, [core, value] {
      return static_cast<double>(value(core->counters()));
    }));
  };
  add("cairn_router_routes_total", "Prompts routed, without retries.",
      [](const Counters& c) { return c.routes; });
  add("cairn_router_deadlines_at_risk_total",
      "Prompts whose deadline no replica was expected to make.",
      [](const Counters& c) { return c.deadlines_at_risk; });
  add("cairn_router_predicted_tokens_total",
      "Cached tokens that reported requests were thought to find.",
      [](const Counters& c) { return c.predicted_tokens; });
  add("cairn_router_delivered_tokens_total", "Cached tokens that they reported.",
      [](const Counters& c) { return c.delivered_tokens; });
  add("cairn_router_output_tokens_total", "Tokens that reported requests generated.",
      [](const Counters& c) { return c.decoded.output_tokens; });
  add("cairn_router_served_tokens_total", "Of them, those that cache nodes attended for.",
      [](const Counters& c) { return c.decoded.served_tokens; });
  add("cairn_router_preemptions_total", "Times that their workers preempted them.",
      [](const Counters& c) { return c.decoded.preemptions; });
  add("cairn_router_refusals_total", "Times that a cache node had no room for them.",
      [](const Counters& c) { return c.decoded.refusals; });
  add("cairn_router_bookings_total", "Bookings made.",
      [](const Counters& c) { return c.bookings.booked; });
  add("cairn_router_bookings_ended_total", "Bookings that a report ended.",
      [](const Counters& c) { return c.bookings.ended; });
  add("cairn_router_bookings_expired_total", "Bookings that nobody reported on in time.",
      [](const Counters& c) { return c.bookings.expired; });
  add("cairn_router_reports_unknown_total", "Reports on bookings that are over.",
      [](const Counters& c) { return c.bookings.reports_unknown; });
  add("cairn_router_reports_foreign_total", "Reports on bookings of another incarnation.",
      [](const Counters& c) { return c.reports_of_other_incarnations; });
}

void RouterMetrics::AddState(Metrics* metrics, RouterCore* core) {
  const auto add = [&](absl::string_view name, absl::string_view help,
                       std::function<double()> value) {
    callbacks_.push_back(metrics->AddCallback(CallbackKind::kGauge, name, help, std::move(value)));
  };
  add("cairn_router_bookings_open", "Bookings that have not ended.", [core] {
    const BookingLedger::Counters c = core->counters().bookings;
    return static_cast<double>(c.booked) - static_cast<double>(c.ended + c.expired);
  });
  add("cairn_router_index_slots", "Pairs of block and holder in the index.",
      [core] { return static_cast<double>(core->counters().index_slots); });
  add("cairn_router_speculative_blocks", "Blocks that booked requests are about to write.",
      [core] { return static_cast<double>(core->counters().speculative_marks); });
  add("cairn_router_sessions", "Sessions whose last replica is remembered.",
      [core] { return static_cast<double>(core->counters().sessions); });
  add("cairn_router_stale_alarm", "1 while much less comes from caches than the index promised.",
      [core] { return core->counters().stale_alarm ? 1.0 : 0.0; });
  add("cairn_router_ready", "1 once the reachable nodes' snapshots are in.",
      [core] { return core->Ready() ? 1.0 : 0.0; });
  add("cairn_router_degraded",
      "1 while ready by waiting alone: nodes or snapshots are still to come.",
      [core] { return core->Degraded() ? 1.0 : 0.0; });
  callbacks_.push_back(metrics->AddCallbackSeries(CallbackKind::kGauge, "cairn_router_holders",
                                                  "Followed addresses by state.", "state", 4,
                                                  [core] { return HoldersByState(*core); }));
}

void RouterMetrics::AddFeeds(Metrics* metrics, const NodeFollowers* followers) {
  using Totals = NodeFollowers::Totals;
  const auto add = [&](absl::string_view name, absl::string_view help, uint64_t Totals::*field,
                       CallbackKind kind = CallbackKind::kCounter) {
    callbacks_.push_back(metrics->AddCallback(kind, name, help, [followers, field] {
      return static_cast<double>(followers->totals().*field);
    }));
  };
  add("cairn_router_feed_messages_total", "Messages of feeds.", &Totals::messages);
  add("cairn_router_feeds_ended_total", "Feeds that ended, or could not be had.",
      &Totals::feeds_ended);
  add("cairn_router_shards_asked_again_total", "Shards asked for again.",
      &Totals::shards_asked_again);
  add("cairn_router_partial_heartbeats_total",
      "Heartbeats of nodes that do not know this router as one and show only a part.",
      &Totals::partial_heartbeats);
  add("cairn_router_nodes_joined_total", "Nodes that came to be followed.", &Totals::joined);
  add("cairn_router_nodes_left_total", "Nodes that are followed no more.", &Totals::left);
  add("cairn_router_nodes_over_bound", "Nodes of the last list that --nodes-max leaves out.",
      &Totals::over_bound, CallbackKind::kGauge);
}

void RouterMetrics::AddMembers(Metrics* metrics, const MemberSource* members) {
  const auto add = [&](CallbackKind kind, absl::string_view name, absl::string_view help,
                       std::function<double()> value) {
    callbacks_.push_back(metrics->AddCallback(kind, name, help, std::move(value)));
  };
  add(CallbackKind::kCounter, "cairn_router_membership_asked_total",
      "Times that the source of nodes was asked.",
      [members] { return static_cast<double>(members->status().asked); });
  add(CallbackKind::kCounter, "cairn_router_membership_failed_total",
      "Of them, those without an answer that was good.",
      [members] { return static_cast<double>(members->status().failed); });
  add(CallbackKind::kGauge, "cairn_router_membership_failing",
      "1 while the source of nodes cannot be asked: the last list stands.",
      [members] { return members->status().last.ok() ? 0.0 : 1.0; });
}

void RouterMetrics::AddRecording(Metrics* metrics, const DecisionRecorder* recorder) {
  const auto add = [&](absl::string_view name, absl::string_view help,
                       uint64_t DecisionRecorder::Counters::*field) {
    callbacks_.push_back(metrics->AddCallback(
        CallbackKind::kCounter, name, help,
        [recorder, field] { return static_cast<double>(recorder->counters().*field); }));
  };
  using Counters = DecisionRecorder::Counters;
  add("cairn_router_decisions_recorded_total", "Decisions written to --record-decisions.",
      &Counters::decisions_recorded);
  add("cairn_router_outcomes_recorded_total", "Reports on bookings written there.",
      &Counters::outcomes_recorded);
  add("cairn_router_decisions_dropped_total",
      "Decisions and reports that were not: the disk was slower than they came, or failed.",
      &Counters::dropped);
  add("cairn_router_decision_bytes_total", "Bytes written there.", &Counters::bytes);
  callbacks_.push_back(
      metrics->AddCallback(CallbackKind::kGauge, "cairn_router_decisions_recording",
                           "1 while decisions are recorded; 0 once the disk refused them.",
                           [recorder] { return recorder->recording() ? 1.0 : 0.0; }));
}

}  // namespace cairn::router
