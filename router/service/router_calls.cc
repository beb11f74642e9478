#include "router/service/router_calls.h"

#include <string>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/identity/key_chain.h"
#include "common/rpc/field_status.h"
#include "common/rpc/id_conversion.h"
#include "common/rpc/prompt_conversion.h"
#include "common/rpc/prompt_tenant.h"
#include "common/wire/limits.h"
#include "router/service/route_wishes.h"
#include "router/service/router_messages.h"

namespace cairn::router {
namespace {

absl::Status CheckTokens(absl::string_view field, uint64_t tokens) {
  if (tokens <= kPromptTokensMax) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": ", tokens, ", at most ", kPromptTokensMax));
}

absl::Status CheckRequestId(absl::string_view id) {
  if (id.empty() || id.size() == kRequestIdBytes) return absl::OkStatus();
  return WrongLength("request_id", id.size(), "16, or none");
}

// Not 0.
uint64_t DigestOf(const v1::RouteRequest& request) {
  return absl::HashOf(request.SerializeAsString()) | 1;
}

absl::StatusOr<OutcomePhase> PhaseFromProto(v1::OutcomePhase phase) {
  switch (phase) {
    case v1::OUTCOME_PHASE_FIRST_TOKEN:
      return OutcomePhase::kFirstToken;
    case v1::OUTCOME_PHASE_END:
      return OutcomePhase::kEnd;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("phase: ", static_cast<int>(phase), ", must be 1 (first token) or 2 (end)"));
  }
}

}  // namespace

absl::StatusOr<RouterCalls::HashedPrompt> RouterCalls::KeysOf(const Caller& caller,
                                                              const Fingerprint& fingerprint,
                                                              const v1::Prompt& prompt) const {
  const v1::Prompt* const prompts[] = {&prompt};
  absl::StatusOr<std::string> tenant = TenantOfPrompts(prompts, caller);
  if (!tenant.ok()) return InField("prompt", tenant.status());
  absl::StatusOr<PromptFields> fields = PromptFromProto(prompt);
  if (!fields.ok()) return InField("prompt", fields.status());
  HashedPrompt result;
  result.tenant = *tenant;
  result.keys = std::move(fields->keys);
  for (Region& region : fields->regions) {
    if (region.scope.tenant.empty()) region.scope.tenant = *tenant;
    const absl::Status may = TenantFor(caller, region.scope.tenant, TenantUse::kRead).status();
    if (!may.ok()) return InField("prompt", may);
    result.tokens += region.tokens.size();
  }
  if (fields->regions.empty()) return result;
  const std::optional<KeyRules> rules = parts_.core->KeyRulesOf(fingerprint);
  if (!rules.has_value()) return result;
  absl::StatusOr<std::vector<BlockKey>> keys =
      PromptKeys(*parts_.hasher, *rules, fields->regions, fields->extras);
  if (!keys.ok()) return InField("prompt", keys.status());
  result.keys = *std::move(keys);
  const Region& first = fields->regions.front();
  if (first.tokens.size() >= rules->block_tokens && !result.keys.empty()) {
    result.root = EnterScope(*BlockKey::FromBytes(fingerprint.view().substr(0, 16)), first.scope);
    result.first_block.assign(first.tokens.begin(), first.tokens.begin() + rules->block_tokens);
  }
  if (first.scope.tenant == kPublicTenant) {
    // A region that another follows is whole blocks.
    result.public_blocks = fields->regions.size() == 1  ? result.keys.size()
                           : first.external_ids.empty() ? first.tokens.size() / rules->block_tokens
                                                        : first.external_ids.size();
  }
  return result;
}

absl::Status RouterCalls::Route(const Caller& caller, const v1::RouteRequest& request,
                                v1::RouteResponse* response) const {
  const absl::StatusOr<Fingerprint> fingerprint = FingerprintFromProto(request.fingerprint());
  if (!fingerprint.ok()) return fingerprint.status();
  for (const absl::Status& status : {CheckTokens("prompt_tokens", request.prompt_tokens()),
                                     CheckTokens("output_tokens", request.output_tokens()),
                                     CheckRequestId(request.request_id())}) {
    if (!status.ok()) return status;
  }
  const absl::StatusOr<HashedPrompt> prompt = KeysOf(caller, *fingerprint, request.prompt());
  if (!prompt.ok()) return prompt.status();
  if (request.prompt_tokens() != 0 && request.prompt_tokens() < prompt->tokens) {
    return absl::InvalidArgumentError(absl::StrCat("prompt_tokens: ", request.prompt_tokens(),
                                                   ", but the prompt has ", prompt->tokens,
                                                   "; give all of them, or 0"));
  }
  RouteQuery query;
  const std::string owner = RequestOwnerOf(caller, prompt->tenant);
  query.caller = owner;
  query.tenant = prompt->tenant;
  query.fingerprint = *fingerprint;
  query.keys = prompt->keys;
  query.prompt_tokens = request.prompt_tokens() != 0 ? request.prompt_tokens() : prompt->tokens;
  query.output_tokens = request.output_tokens();
  if (!request.policy().empty()) {
    const absl::StatusOr<const RoutePolicy*> policy = parts_.policies->Find(request.policy());
    if (!policy.ok()) return policy.status();
    query.policy = *policy;
  }
  RouteWishes wishes;
  if (const absl::Status status = ReadWishes(request, &wishes); !status.ok()) return status;
  wishes.AddTo(&query);
  query.request_id = request.request_id();
  if (!query.request_id.empty()) query.request_digest = DigestOf(request);
  const absl::StatusOr<RouteAnswer> answer = parts_.core->Route(query);
  if (!answer.ok()) return answer.status();
  ToMessage(*answer, parts_.core->incarnation(), response);
  NoteStart(*prompt, *answer);
  if (parts_.replicator != nullptr) {
    parts_.replicator->OnRouted({.tenant = prompt->tenant,
                                 .fingerprint = *fingerprint,
                                 .keys = prompt->keys,
                                 .public_blocks = prompt->public_blocks,
                                 .block_tokens = parts_.core->BlockTokens(*fingerprint).value_or(0),
                                 .replicas = answer->replicas});
  }
  return absl::OkStatus();
}

void RouterCalls::NoteStart(const HashedPrompt& prompt, const RouteAnswer& answer) const {
  if (parts_.changing_starts == nullptr || prompt.first_block.empty()) return;
  for (const RankedReplica& replica : answer.replicas) {
    if (replica.matched.total() > 0 || replica.remote_tokens > 0) return;
  }
  const std::optional<ChangingStarts::Finding> finding =
      parts_.changing_starts->Observe(prompt.root, prompt.first_block);
  if (!finding.has_value() || !parts_.log) return;
  parts_.log(absl::StrCat(
      "prompts of tenant ", prompt.tenant, " begin with a value that changes: ", finding->tokens,
      " tokens at position ", finding->position,
      ", and what follows is equal again. A timestamp or an id there costs every hit; move it "
      "behind what prompts share (`cairnctl explain` shows one)"));
}

absl::Status RouterCalls::LookupPrefix(const Caller& caller, const v1::LookupPrefixRequest& request,
                                       v1::LookupPrefixResponse* response) const {
  const absl::StatusOr<Fingerprint> fingerprint = FingerprintFromProto(request.fingerprint());
  if (!fingerprint.ok()) return fingerprint.status();
  const absl::StatusOr<HashedPrompt> prompt = KeysOf(caller, *fingerprint, request.prompt());
  if (!prompt.ok()) return prompt.status();
  ToMessage(parts_.core->LookupPrefix(prompt->tenant, *fingerprint, prompt->keys),
            prompt->keys.size(), response);
  return absl::OkStatus();
}

namespace {

absl::Status ReadDecoded(const v1::ReportOutcomeRequest& request, Decoded* decoded) {
  for (const absl::Status& status : {CheckTokens("output_tokens", request.output_tokens()),
                                     CheckTokens("served_tokens", request.served_tokens()),
                                     CheckTokens("preemptions", request.preemptions()),
                                     CheckTokens("refusals", request.refusals())}) {
    if (!status.ok()) return status;
  }
  if (request.served_tokens() > request.output_tokens()) {
    return absl::InvalidArgumentError(
        absl::StrCat("served_tokens: ", request.served_tokens(), ", but output_tokens is ",
                     request.output_tokens(), ", which they are a part of"));
  }
  *decoded = {.output_tokens = request.output_tokens(),
              .served_tokens = request.served_tokens(),
              .preemptions = request.preemptions(),
              .refusals = request.refusals()};
  return absl::OkStatus();
}

}  // namespace

absl::Status RouterCalls::ReportOutcome(const Caller& caller,
                                        const v1::ReportOutcomeRequest& request,
                                        v1::ReportOutcomeResponse* response) const {
  const absl::StatusOr<BookingId> booking = IdFromProto<BookingId>(request.booking(), "booking");
  if (!booking.ok()) return booking.status();
  const absl::StatusOr<Incarnation> incarnation =
      IdFromProto<Incarnation>(request.router_incarnation(), "router_incarnation");
  if (!incarnation.ok()) return incarnation.status();
  const absl::StatusOr<OutcomePhase> phase = PhaseFromProto(request.phase());
  if (!phase.ok()) return phase.status();
  for (const absl::Status& status : {CheckTokens("cached_tokens", request.cached_tokens()),
                                     CheckTokens("computed_tokens", request.computed_tokens())}) {
    if (!status.ok()) return status;
  }
  if (request.worker_address().size() > kNameBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "worker_address: ", request.worker_address().size(), " bytes, at most ", kNameBytesMax));
  }
  OutcomeReport report;
  if (absl::Status status = ReadDecoded(request, &report.decoded); !status.ok()) return status;
  // As for prompts: a gateway routes for each of its tenants.
  if (!caller.all_tenants) {
    report.tenants.emplace(caller.tenants.begin(), caller.tenants.end());
    report.tenants->push_back(caller.tenant);
  }
  report.booking = *booking;
  report.router_incarnation = *incarnation;
  report.phase = *phase;
  report.worker_address = request.worker_address();
  report.cached_tokens = request.cached_tokens();
  report.computed_tokens = request.computed_tokens();
  report.compute_seconds = request.compute_seconds();
  const absl::StatusOr<bool> known = parts_.core->ReportOutcome(report);
  if (!known.ok()) return known.status();
  response->set_known(*known);
  return absl::OkStatus();
}

absl::Status RouterCalls::ListReplicas(const Caller& /*caller*/,
                                       const v1::ListReplicasRequest& /*request*/,
                                       v1::ListReplicasResponse* response) const {
  // First: what is listed then is at least what made it ready.
  response->set_ready(parts_.core->Ready());
  response->set_degraded(parts_.core->Degraded());
  for (const ReplicaStatus& status : parts_.core->ListReplicas()) {
    ToMessage(status, response->add_replicas());
  }
  response->set_router_incarnation(std::string(parts_.core->incarnation().view()));
  if (parts_.followers == nullptr) return absl::OkStatus();
  for (const NodeFollowers::Entry& entry : parts_.followers->Entries()) {
    v1::HolderInfo* holder = response->add_holders();
    holder->set_address(entry.address);
    holder->set_state(ToMessage(parts_.core->StateOf(entry.holder)));
    holder->set_node_id(entry.status.node_id);
    holder->set_error(std::string(entry.status.ended.message()));
    holder->set_held_back(entry.held_back);
  }
  v1::MembershipInfo* membership = response->mutable_membership();
  membership->set_nodes(static_cast<uint32_t>(response->holders_size()));
  membership->set_source(parts_.members == nullptr ? "static" : parts_.members->name());
  if (parts_.members != nullptr) {
    membership->set_error(std::string(parts_.members->status().last.message()));
  }
  return absl::OkStatus();
}

}  // namespace cairn::router
