#include "router/decisions/snapshot_codec.h"

#include <array>
#include <utility>

#include "common/base/check.h"

namespace cairn::router {
namespace {

constexpr std::array<std::pair<HolderState, v1::HolderState>, 4> kStates = {{
    {HolderState::kExact, v1::HOLDER_STATE_EXACT},
    {HolderState::kRecovering, v1::HOLDER_STATE_RECOVERING},
    {HolderState::kDegraded, v1::HOLDER_STATE_DEGRADED},
    {HolderState::kOut, v1::HOLDER_STATE_OUT},
}};
constexpr std::array<std::pair<RouteReason, v1::RouteReason>, 5> kReasons = {{
    {RouteReason::kPrefix, v1::ROUTE_REASON_PREFIX},
    {RouteReason::kRendezvous, v1::ROUTE_REASON_RENDEZVOUS},
    {RouteReason::kLoad, v1::ROUTE_REASON_LOAD},
    {RouteReason::kHolderOut, v1::ROUTE_REASON_HOLDER_OUT},
    {RouteReason::kSession, v1::ROUTE_REASON_SESSION},
}};

template <typename Ours, typename Theirs, size_t kCount>
Theirs MessageOf(const std::array<std::pair<Ours, Theirs>, kCount>& values, Ours value) {
  for (const auto& [ours, theirs] : values) {
    if (ours == value) return theirs;
  }
  CAIRN_CHECK_MSG(false, "a value without a message");
}

template <typename Ours, typename Theirs, size_t kCount>
Ours FromMessage(const std::array<std::pair<Ours, Theirs>, kCount>& values, Theirs message,
                 absl::string_view field, FieldCheck* check) {
  for (const auto& [ours, theirs] : values) {
    if (theirs == message) return ours;
  }
  check->Check(field, false);
  return values.front().first;
}

void ToMessage(const ReplicaView& view, ReplicaId id, v1::ReplicaView* message) {
  const auto& [stable_hash, available, holder_state, stale_share, age_seconds,
               queued_prefill_tokens, running_kv_tokens, requests, kv_tokens_max,
               prefill_tokens_per_second, own_tokens, coming_tokens, remote_tokens,
               remote_tokens_per_second, session_here, lacking_label_seconds] = view;
  message->set_id(id);
  message->set_stable_hash(stable_hash);
  message->set_available(available);
  message->set_holder_state(MessageOf(kStates, holder_state));
  message->set_stale_share(stale_share);
  if (age_seconds.has_value()) message->set_age_seconds(*age_seconds);
  message->set_queued_prefill_tokens(queued_prefill_tokens);
  message->set_running_kv_tokens(running_kv_tokens);
  message->set_requests(requests);
  if (kv_tokens_max.has_value()) message->set_kv_tokens_max(*kv_tokens_max);
  message->set_prefill_tokens_per_second(prefill_tokens_per_second);
  if (own_tokens != ByTier<uint64_t>{}) {
    message->mutable_own_tokens()->Add(own_tokens.begin(), own_tokens.end());
  }
  message->set_coming_tokens(coming_tokens);
  message->set_remote_tokens(remote_tokens);
  message->set_remote_tokens_per_second(remote_tokens_per_second);
  message->set_session_here(session_here);
  message->set_lacking_label_seconds(lacking_label_seconds);
}

ReplicaView ViewFromMessage(const v1::ReplicaView& message, FieldCheck* check) {
  ReplicaView view;
  auto& [stable_hash, available, holder_state, stale_share, age_seconds, queued_prefill_tokens,
         running_kv_tokens, requests, kv_tokens_max, prefill_tokens_per_second, own_tokens,
         coming_tokens, remote_tokens, remote_tokens_per_second, session_here,
         lacking_label_seconds] = view;
  stable_hash = message.stable_hash();
  available = message.available();
  holder_state = FromMessage(kStates, message.holder_state(), "holder_state", check);
  stale_share = check->Amount("stale_share", message.stale_share());
  check->Check("stale_share", stale_share <= 1);
  if (message.has_age_seconds()) {
    age_seconds = check->Amount("age_seconds", message.age_seconds());
  }
  queued_prefill_tokens = check->Count("queued_prefill_tokens", message.queued_prefill_tokens());
  running_kv_tokens = check->Count("running_kv_tokens", message.running_kv_tokens());
  requests = check->Count("requests", message.requests());
  if (message.has_kv_tokens_max()) {
    kv_tokens_max = check->Count("kv_tokens_max", message.kv_tokens_max());
  }
  prefill_tokens_per_second = check->Amount(
      "prefill_tokens_per_second", message.prefill_tokens_per_second(), FieldCheck::kRateMin);
  if (message.own_tokens_size() > 0) {
    check->Check("own_tokens", message.own_tokens_size() == kTierCount);
    for (size_t tier = 0; tier < kTierCount && check->status().ok(); ++tier) {
      own_tokens[tier] = check->Count("own_tokens", message.own_tokens(static_cast<int>(tier)));
    }
  }
  coming_tokens = check->Count("coming_tokens", message.coming_tokens());
  remote_tokens = check->Count("remote_tokens", message.remote_tokens());
  remote_tokens_per_second =
      check->Amount("remote_tokens_per_second", message.remote_tokens_per_second());
  session_here = message.session_here();
  lacking_label_seconds = check->Amount("lacking_label_seconds", message.lacking_label_seconds());
  return view;
}

}  // namespace

void ToMessage(const RouteSnapshot& snapshot, const std::vector<ReplicaId>& replicas,
               v1::RouteSnapshot* message) {
  const auto& [views, prompt_tokens, output_tokens, block_tokens, transfer, prefix_hash, random,
               sequence, deadline_seconds] = snapshot;
  const auto& [own_tokens_per_second] = transfer;
  CAIRN_CHECK(views.size() == replicas.size());
  message->mutable_replicas()->Reserve(static_cast<int>(views.size()));
  for (size_t i = 0; i < views.size(); ++i) {
    ToMessage(views[i], replicas[i], message->add_replicas());
  }
  message->set_prompt_tokens(prompt_tokens);
  message->set_output_tokens(output_tokens);
  message->set_block_tokens(block_tokens);
  message->mutable_own_tokens_per_second()->Add(own_tokens_per_second.begin(),
                                                own_tokens_per_second.end());
  if (prefix_hash.has_value()) message->set_prefix_hash(*prefix_hash);
  message->set_random(random);
  message->set_sequence(sequence);
  if (deadline_seconds.has_value()) message->set_deadline_seconds(*deadline_seconds);
}

RouteSnapshot SnapshotFromMessage(const v1::RouteSnapshot& message,
                                  std::vector<ReplicaId>* replicas, FieldCheck* check) {
  RouteSnapshot snapshot;
  auto& [views, prompt_tokens, output_tokens, block_tokens, transfer, prefix_hash, random, sequence,
         deadline_seconds] = snapshot;
  auto& [own_tokens_per_second] = transfer;
  const auto count = static_cast<size_t>(message.replicas_size());
  check->Check("replicas", count >= 1 && count <= kHoldersMax);
  check->Check("own_tokens_per_second", message.own_tokens_per_second_size() == kTierCount);
  if (!check->status().ok()) return snapshot;
  for (const v1::ReplicaView& view : message.replicas()) {
    replicas->push_back(view.id());
    views.push_back(ViewFromMessage(view, check));
  }
  prompt_tokens = check->Count("prompt_tokens", message.prompt_tokens());
  output_tokens = check->Count("output_tokens", message.output_tokens());
  block_tokens = message.block_tokens();
  for (size_t tier = 0; tier < kTierCount; ++tier) {
    own_tokens_per_second[tier] = check->Amount(
        "own_tokens_per_second", message.own_tokens_per_second(static_cast<int>(tier)));
  }
  if (message.has_prefix_hash()) prefix_hash = message.prefix_hash();
  random = message.random();
  sequence = message.sequence();
  if (message.has_deadline_seconds()) {
    deadline_seconds = check->Amount("deadline_seconds", message.deadline_seconds());
  }
  return snapshot;
}

void ToMessage(const RankedChoice& choice, v1::RankedChoice* message) {
  const auto& [replica, score, terms, reason] = choice;
  const auto& [queued_seconds, compute_seconds, fetch_seconds, expected_ttft_seconds, ramp_seconds,
               label_seconds, session_seconds, trust] = terms;
  message->set_replica(static_cast<uint32_t>(replica));
  message->set_score(score);
  message->set_reason(MessageOf(kReasons, reason));
  message->set_queued_seconds(queued_seconds);
  v1::RouteTerms* const sums = message->mutable_terms();
  sums->set_compute_seconds(compute_seconds);
  sums->set_fetch_seconds(fetch_seconds);
  sums->set_expected_ttft_seconds(expected_ttft_seconds);
  sums->set_ramp_seconds(ramp_seconds);
  sums->set_label_seconds(label_seconds);
  sums->set_session_seconds(session_seconds);
  sums->set_trust(trust);
}

RankedChoice ChoiceFromMessage(const v1::RankedChoice& message, size_t replicas,
                               FieldCheck* check) {
  RankedChoice choice;
  auto& [replica, score, terms, reason] = choice;
  auto& [queued_seconds, compute_seconds, fetch_seconds, expected_ttft_seconds, ramp_seconds,
         label_seconds, session_seconds, trust] = terms;
  check->Check("replica", message.replica() < replicas);
  replica = message.replica();
  score = check->Number("score", message.score());
  reason = FromMessage(kReasons, message.reason(), "reason", check);
  queued_seconds = check->Number("queued_seconds", message.queued_seconds());
  const v1::RouteTerms& sums = message.terms();
  compute_seconds = check->Number("compute_seconds", sums.compute_seconds());
  fetch_seconds = check->Number("fetch_seconds", sums.fetch_seconds());
  expected_ttft_seconds = check->Number("expected_ttft_seconds", sums.expected_ttft_seconds());
  ramp_seconds = check->Number("ramp_seconds", sums.ramp_seconds());
  label_seconds = check->Number("label_seconds", sums.label_seconds());
  session_seconds = check->Number("session_seconds", sums.session_seconds());
  trust = check->Number("trust", sums.trust());
  return choice;
}

}  // namespace cairn::router
