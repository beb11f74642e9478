#include "router/decisions/decision_codec.h"

#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "router/decisions/snapshot_codec.h"

namespace cairn::router {
namespace {

constexpr size_t kNameBytesMax = 256;
constexpr int64_t kUnixMsMax = int64_t{1} << 50;
// Options are weights, shares and seconds.
constexpr double kOptionMax = 1e9;

absl::Time TimeFrom(int64_t unix_ms, FieldCheck* check) {
  check->Check("time", unix_ms >= 0 && unix_ms <= kUnixMsMax);
  return absl::FromUnixMillis(unix_ms);
}

// Calls visit(name, field) for each option.
template <typename Options, typename Visit>
void ForEachOption(Options& options, const Visit& visit) {
  // Breaks where a member is added: replays with other options than the router's mean nothing.
  auto& [miss_weight, short_match_tokens, short_match_share, queue_slack_prompts, decode_weight,
         trust, ramp_seconds, session_seconds] = options;
  auto& [recovering, degraded, stale_share_most] = trust;
  visit("miss_weight", miss_weight);
  visit("short_match_tokens", short_match_tokens);
  visit("short_match_share", short_match_share);
  visit("queue_slack_prompts", queue_slack_prompts);
  visit("decode_weight", decode_weight);
  visit("trust.recovering", recovering);
  visit("trust.degraded", degraded);
  visit("trust.stale_share_most", stale_share_most);
  visit("ramp_seconds", ramp_seconds);
  visit("session_seconds", session_seconds);
}

}  // namespace

void ToMessage(const DecisionRun& run, v1::DecisionRun* message) {
  const auto& [started, policy, options, share] = run;
  message->set_started_unix_ms(absl::ToUnixMillis(started));
  message->set_policy(policy);
  ForEachOption(options, [message](const char* name, const auto& value) {
    (*message->mutable_options())[name] = static_cast<double>(value);
  });
  message->set_share(share);
}

absl::StatusOr<DecisionRun> RunFromMessage(const v1::DecisionRun& message) {
  FieldCheck check;
  DecisionRun run;
  run.started = TimeFrom(message.started_unix_ms(), &check);
  check.Check("policy", message.policy().size() <= kNameBytesMax);
  run.policy = message.policy();
  // One that an older router did not know has its default.
  ForEachOption(run.options, [&](const char* name, auto& value) {
    const auto found = message.options().find(name);
    if (found == message.options().end()) return;
    check.Check(name, found->second >= 0 && found->second <= kOptionMax);
    if (!check.status().ok()) return;
    value = static_cast<std::remove_reference_t<decltype(value)>>(found->second);
  });
  check.Check("miss_weight", run.options.miss_weight >= 1);
  run.share = check.Amount("share", message.share());
  if (!check.status().ok()) return check.status();
  return run;
}

void ToMessage(const ReplicaNames& names, v1::ReplicaTable* message) {
  for (const ReplicaName& name : names) {
    const auto& [id, worker_address, node_id] = name;
    v1::ReplicaTable::Replica* const replica = message->add_replicas();
    replica->set_id(id);
    replica->set_worker_address(worker_address);
    replica->set_node_id(node_id);
  }
}

absl::StatusOr<ReplicaNames> NamesFromMessage(const v1::ReplicaTable& message) {
  FieldCheck check;
  check.Check("replicas", static_cast<size_t>(message.replicas_size()) <= kHoldersMax);
  if (!check.status().ok()) return check.status();
  ReplicaNames names;
  for (const v1::ReplicaTable::Replica& replica : message.replicas()) {
    check.Check("worker_address", replica.worker_address().size() <= kNameBytesMax);
    check.Check("node_id", replica.node_id().size() <= kNameBytesMax);
    names.push_back({replica.id(), replica.worker_address(), replica.node_id()});
  }
  if (!check.status().ok()) return check.status();
  return names;
}

void ToMessage(const Decision& decision, v1::Decision* message) {
  // The names are a record of their own.
  const auto& [time, booking, fingerprint, policy, degraded, snapshot, ranked, replicas, _] =
      decision;
  message->set_time_unix_ms(absl::ToUnixMillis(time));
  message->set_booking(std::string(booking.view()));
  message->set_fingerprint(std::string(fingerprint.view()));
  message->set_policy(policy);
  message->set_degraded(degraded);
  ToMessage(snapshot, replicas, message->mutable_snapshot());
  message->mutable_ranked()->Reserve(static_cast<int>(ranked.size()));
  for (const RankedChoice& choice : ranked) ToMessage(choice, message->add_ranked());
}

absl::StatusOr<Decision> DecisionFromMessage(const v1::Decision& message) {
  FieldCheck check;
  Decision decision;
  decision.time = TimeFrom(message.time_unix_ms(), &check);
  const std::optional<BookingId> booking = BookingId::FromBytes(message.booking());
  const std::optional<Fingerprint> fingerprint = Fingerprint::FromBytes(message.fingerprint());
  check.Check("booking", booking.has_value());
  check.Check("fingerprint", fingerprint.has_value());
  check.Check("policy", message.policy().size() <= kNameBytesMax);
  if (!check.status().ok()) return check.status();
  decision.booking = *booking;
  decision.fingerprint = *fingerprint;
  decision.policy = message.policy();
  decision.degraded = message.degraded();
  decision.snapshot = SnapshotFromMessage(message.snapshot(), &decision.replicas, &check);
  const size_t replicas = decision.snapshot.replicas.size();
  check.Check("ranked",
              message.ranked_size() >= 1 && static_cast<size_t>(message.ranked_size()) <= replicas);
  if (!check.status().ok()) return check.status();
  for (const v1::RankedChoice& choice : message.ranked()) {
    decision.ranked.push_back(ChoiceFromMessage(choice, replicas, &check));
  }
  if (!check.status().ok()) return check.status();
  return decision;
}

void ToMessage(const DecisionOutcome& outcome, v1::DecisionOutcome* message) {
  const auto& [time, booking, phase, replica, elsewhere, cached_tokens, computed_tokens,
               compute_seconds, decoded] = outcome;
  message->set_time_unix_ms(absl::ToUnixMillis(time));
  message->set_booking(std::string(booking.view()));
  message->set_phase(phase == OutcomePhase::kEnd ? v1::OUTCOME_PHASE_END
                                                 : v1::OUTCOME_PHASE_FIRST_TOKEN);
  message->set_replica_id(replica);
  message->set_elsewhere(elsewhere);
  message->set_cached_tokens(cached_tokens);
  message->set_computed_tokens(computed_tokens);
  message->set_compute_seconds(compute_seconds);
  message->set_output_tokens(decoded.output_tokens);
  message->set_served_tokens(decoded.served_tokens);
  message->set_preemptions(decoded.preemptions);
  message->set_refusals(decoded.refusals);
}

absl::StatusOr<DecisionOutcome> OutcomeFromMessage(const v1::DecisionOutcome& message) {
  FieldCheck check;
  DecisionOutcome outcome;
  outcome.time = TimeFrom(message.time_unix_ms(), &check);
  const std::optional<BookingId> booking = BookingId::FromBytes(message.booking());
  check.Check("booking", booking.has_value());
  check.Check("phase", message.phase() == v1::OUTCOME_PHASE_FIRST_TOKEN ||
                           message.phase() == v1::OUTCOME_PHASE_END);
  if (booking.has_value()) outcome.booking = *booking;
  outcome.phase =
      message.phase() == v1::OUTCOME_PHASE_END ? OutcomePhase::kEnd : OutcomePhase::kFirstToken;
  outcome.replica = message.replica_id();
  outcome.elsewhere = message.elsewhere();
  outcome.cached_tokens = check.Count("cached_tokens", message.cached_tokens());
  outcome.computed_tokens = check.Count("computed_tokens", message.computed_tokens());
  outcome.compute_seconds = check.Amount("compute_seconds", message.compute_seconds());
  outcome.decoded = {.output_tokens = check.Count("output_tokens", message.output_tokens()),
                     .served_tokens = check.Count("served_tokens", message.served_tokens()),
                     .preemptions = check.Count("preemptions", message.preemptions()),
                     .refusals = check.Count("refusals", message.refusals())};
  if (!check.status().ok()) return check.status();
  return outcome;
}

}  // namespace cairn::router
