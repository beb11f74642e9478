#include "router/service/router_messages.h"

#include <google/protobuf/repeated_field.h>

#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/rpc/labels.h"

namespace cairn::router {
namespace {

v1::RouteReason ToMessage(RouteReason reason) {
  switch (reason) {
    case RouteReason::kPrefix:
      return v1::ROUTE_REASON_PREFIX;
    case RouteReason::kRendezvous:
      return v1::ROUTE_REASON_RENDEZVOUS;
    case RouteReason::kLoad:
      return v1::ROUTE_REASON_LOAD;
    case RouteReason::kHolderOut:
      return v1::ROUTE_REASON_HOLDER_OUT;
    case RouteReason::kSession:
      return v1::ROUTE_REASON_SESSION;
  }
  CAIRN_CHECK_MSG(false, "a reason that is none");
}

void ToMessage(const ByTier<uint64_t>& tokens,
               google::protobuf::RepeatedPtrField<v1::TierTokens>* messages) {
  for (size_t tier = 0; tier < kTierCount; ++tier) {
    if (tokens[tier] == 0) continue;
    v1::TierTokens* message = messages->Add();
    message->set_tier(static_cast<v1::Tier>(tier + 1));
    message->set_tokens(tokens[tier]);
  }
}

void ToMessage(const RouteTerms& terms, v1::RouteTerms* message) {
  message->set_compute_seconds(terms.compute_seconds);
  message->set_fetch_seconds(terms.fetch_seconds);
  message->set_expected_ttft_seconds(terms.expected_ttft_seconds);
  message->set_ramp_seconds(terms.ramp_seconds);
  message->set_label_seconds(terms.label_seconds);
  message->set_session_seconds(terms.session_seconds);
  message->set_trust(terms.trust);
}

void ToMessage(const std::vector<std::string>& addresses,
               google::protobuf::RepeatedPtrField<std::string>* messages) {
  messages->Add(addresses.begin(), addresses.end());
}

}  // namespace

v1::HolderState ToMessage(HolderState state) {
  switch (state) {
    case HolderState::kOut:
      return v1::HOLDER_STATE_OUT;
    case HolderState::kDegraded:
      return v1::HOLDER_STATE_DEGRADED;
    case HolderState::kRecovering:
      return v1::HOLDER_STATE_RECOVERING;
    case HolderState::kExact:
      return v1::HOLDER_STATE_EXACT;
  }
  CAIRN_CHECK_MSG(false, "a state that is none");
}

void ToMessage(const RouteAnswer& answer, const Incarnation& router, v1::RouteResponse* message) {
  CAIRN_CHECK(!answer.replicas.empty());
  for (const RankedReplica& replica : answer.replicas) {
    v1::RankedReplica* ranked = message->add_replicas();
    ranked->set_worker_address(replica.worker_address);
    ranked->set_node_id(replica.node_id);
    ToMessage(replica.node_addresses, ranked->mutable_node_addresses());
    ToMessage(replica.matched.fed, ranked->mutable_matched());
    ranked->set_coming_tokens(replica.matched.coming);
    ranked->set_remote_tokens(replica.remote_tokens);
    ranked->set_remote_node_id(replica.remote_node_id);
    ranked->set_score(replica.score);
    ranked->set_queued_seconds(replica.terms.queued_seconds);
    ranked->set_reason(ToMessage(replica.reason));
    ToMessage(replica.terms, ranked->mutable_terms());
    ranked->set_holder_state(ToMessage(replica.holder_state));
  }
  message->set_booking(std::string(answer.booking.view()));
  message->set_router_incarnation(std::string(router.view()));
  message->set_degraded(answer.degraded);
  message->set_policy(answer.policy);
  message->set_score_unit(answer.score_unit);
  message->set_deadline_at_risk(answer.deadline_at_risk);
}

void ToMessage(const LookupAnswer& answer, size_t blocks, v1::LookupPrefixResponse* message) {
  message->set_namespace_known(answer.namespace_known);
  message->set_blocks_total(static_cast<uint32_t>(blocks));
  for (const HolderMatch& match : answer.holders) {
    v1::HolderMatch* holder = message->add_holders();
    holder->set_node_id(match.node_id);
    ToMessage(match.node_addresses, holder->mutable_node_addresses());
    holder->set_state(ToMessage(match.state));
    holder->set_blocks(match.blocks);
    ToMessage(match.matched.fed, holder->mutable_matched());
  }
}

void ToMessage(const ReplicaStatus& status, v1::ReplicaInfo* message) {
  message->set_worker_address(status.worker_address);
  message->set_node_id(status.node_id);
  ToMessage(status.node_addresses, message->mutable_node_addresses());
  message->set_state(ToMessage(status.state));
  if (status.incarnation.has_value()) {
    message->set_incarnation(std::string(status.incarnation->view()));
  }
  message->set_blocks(status.blocks);
  message->set_prefill_tokens(status.load.prefill_tokens);
  message->set_kv_tokens(status.load.kv_tokens);
  message->set_requests(status.load.requests);
  message->set_prefill_tokens_per_second(status.prefill_tokens_per_second);
  message->set_stale_share(status.stale_share);
  message->set_conflict(status.conflict);
  LabelsToProto(status.labels, message->mutable_labels());
  message->set_kv_tokens_max(status.kv_tokens_max.value_or(0));
  message->set_drain_state(status.drain_state);
}

}  // namespace cairn::router
