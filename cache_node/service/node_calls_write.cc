#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cache_node/service/node_calls.h"
#include "cache_node/service/pin_time.h"
#include "cache_node/service/request_hash.h"
#include "cache_node/service/store_messages.h"
#include "cache_node/store/reserve_plan.h"
#include "cache_node/store/writer_digest.h"
#include "common/base/check.h"
#include "common/base/hex.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/field_status.h"
#include "common/rpc/id_conversion.h"
#include "common/rpc/prompt_conversion.h"
#include "common/wire/limits.h"

namespace cairn::node {
namespace {

absl::StatusOr<std::vector<BlockKey>> ReserveKeys(const v1::ReserveRequest& request) {
  absl::StatusOr<std::vector<BlockKey>> keys =
      KeysFromProto(request.keys(), "keys", kBlocksPerReserveMax);
  if (!keys.ok()) return keys;
  if (keys->empty()) return absl::InvalidArgumentError("keys: none; give at least one");
  if (absl::Status status = CheckNoDuplicates(*keys, "keys"); !status.ok()) return status;
  return keys;
}

absl::Status SetParents(const v1::ReserveRequest& request, ReserveFields& fields) {
  const absl::StatusOr<std::optional<BlockKey>> region_parent =
      OptionalIdFromProto<BlockKey>(request.region_parent_key(), "region_parent_key");
  if (!region_parent.ok()) return region_parent.status();
  const absl::StatusOr<std::optional<BlockKey>> parent =
      OptionalIdFromProto<BlockKey>(request.parent_key(), "parent_key");
  if (!parent.ok()) return parent.status();
  fields.region_parent = *region_parent;
  fields.parent = *parent;
  return absl::OkStatus();
}

// Within what a wall clock's milliseconds can say.
constexpr uint64_t kRetentionMsMax = uint64_t{100} * 366 * 24 * 3600 * 1000;

absl::StatusOr<Retention> RetentionFromProto(const v1::Retention& message, absl::Time wall) {
  const int64_t now_unix_ms = absl::ToUnixMillis(wall);
  const auto end_of = [now_unix_ms](uint64_t ms) {
    return ms == 0 ? int64_t{0} : now_unix_ms + static_cast<int64_t>(ms);
  };
  if (message.priority() > kPriorityMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("priority: ", message.priority(), ", at most ", kPriorityMax));
  }
  for (const uint64_t ms : {message.priority_ms(), message.ttl_ms()}) {
    if (ms <= kRetentionMsMax) continue;
    return absl::InvalidArgumentError(absl::StrCat("priority_ms, ttl_ms: ", ms, ", at most ",
                                                   kRetentionMsMax, " (100 years); 0 has no end"));
  }
  Retention retention;
  if (message.has_priority()) retention.priority = static_cast<uint8_t>(message.priority());
  retention.priority_until_unix_ms = end_of(message.priority_ms());
  retention.expires_unix_ms = end_of(message.ttl_ms());
  return retention;
}

}  // namespace

absl::Status NodeCalls::Reserve(const Caller& caller, const v1::ReserveRequest& request,
                                v1::ReserveResponse* response) {
  if (absl::Status status = DrainStatus(); !status.ok()) return status;
  const absl::StatusOr<ReservePlan> plan = MakePlan(request, caller);
  if (!plan.ok()) return plan.status();
  absl::StatusOr<RequestMemory::Turn> turn = parts_.memory->Begin(
      RequestOwnerOf(caller, plan->tenant), request.request_id(), RequestHash("Reserve", request));
  if (!turn.ok()) return turn.status();
  if (turn->answer().has_value()) {
    CAIRN_CHECK(response->ParseFromString(*turn->answer()));
    return absl::OkStatus();
  }
  const absl::StatusOr<ReserveAnswer> answer = ReservePlanned(*plan);
  if (!answer.ok()) return answer.status();
  CAIRN_CHECK(answer->outcomes.size() == plan->query.keys.size());
  if (parts_.rates != nullptr) parts_.rates->Charge(plan->tenant, ReservedBytes(*plan, *answer));
  ToMessage(*answer, response);
  turn->Remember(response->SerializeAsString());
  return absl::OkStatus();
}

absl::Status NodeCalls::CheckPublic(const ReservePlan& plan) const {
  if (parts_.public_scope == nullptr || plan.tenant != kPublicTenant) return absl::OkStatus();
  return parts_.public_scope->Check(plan.key_scheme, plan.query.keys);
}

absl::StatusOr<ReserveAnswer> NodeCalls::ReservePlanned(const ReservePlan& plan) const {
  absl::StatusOr<ReserveAnswer> answer =
      parts_.store->Reserve(plan.tenant, plan.fingerprint, plan.query);
  if (!answer.ok()) return answer;
  // The list may have lost the prefix since it was checked, and what removes such blocks be past
  // these.
  if (absl::Status status = CheckPublic(plan); !status.ok()) {
    // Gone already is as well.
    if (answer->token.has_value()) (void)parts_.store->Abort(plan.tenant, *answer->token);
    return status;
  }
  return answer;
}

absl::Status NodeCalls::Admit(absl::string_view tenant) const {
  return parts_.rates == nullptr ? absl::OkStatus() : parts_.rates->Admit(tenant);
}

uint64_t NodeCalls::ReservedBytes(const ReservePlan& plan, const ReserveAnswer& answer) const {
  const auto blocks =
      std::count(answer.outcomes.begin(), answer.outcomes.end(), ReserveOutcome::kReserved);
  const PayloadMap* map = parts_.store->FindPayloadMap(plan.fingerprint);
  return map == nullptr ? 0 : static_cast<uint64_t>(blocks) * map->block_bytes();
}

absl::StatusOr<NodeCalls::ReservePlan> NodeCalls::MakePlan(const v1::ReserveRequest& request,
                                                           const Caller& caller) const {
  ReservePlan plan;
  const absl::StatusOr<Fingerprint> fingerprint = FingerprintFromProto(request.fingerprint());
  if (!fingerprint.ok()) return fingerprint.status();
  plan.fingerprint = *fingerprint;
  ReserveFields fields;
  absl::StatusOr<Scope> scope = ScopeFromProto(request.scope());
  if (!scope.ok()) return InField("scope", scope.status());
  absl::StatusOr<std::string> tenant = TenantFor(caller, scope->tenant, TenantUse::kWrite);
  if (!tenant.ok()) {
    if (parts_.public_scope != nullptr && scope->tenant == kPublicTenant) {
      parts_.public_scope->CountRefused();
    }
    return InField("scope", tenant.status());
  }
  plan.tenant = *tenant;
  if (absl::Status status = Admit(plan.tenant); !status.ok()) return status;
  fields.scope = *std::move(scope);
  fields.scope.tenant = *std::move(tenant);
  const absl::StatusOr<std::vector<BlockKey>> keys = ReserveKeys(request);
  if (!keys.ok()) return keys.status();
  fields.keys = *keys;
  if (absl::Status status = SetParents(request, fields); !status.ok()) return status;
  if (request.tokens_size() > static_cast<int>(kTokensPerCallMax)) {
    return absl::InvalidArgumentError(
        absl::StrCat("tokens: ", request.tokens_size(), ", at most ", kTokensPerCallMax));
  }
  fields.tokens = request.tokens();
  absl::StatusOr<ExtrasByBlock> extras = ExtrasFromProto(request.extras(), keys->size());
  if (!extras.ok()) return extras.status();
  fields.extras = *std::move(extras);
  const absl::StatusOr<std::vector<std::string>> external_ids =
      ExternalIdsFromProto(request.external_ids(), keys->size());
  if (!external_ids.ok()) return external_ids.status();
  fields.external_ids = *external_ids;
  fields.ttl = absl::Milliseconds(request.ttl_ms());

  const Namespace* const name_space = FindNamespace(plan.tenant, plan.fingerprint);
  if (name_space == nullptr) {
    return WithReason(
        absl::FailedPreconditionError(absl::StrCat("namespace ", ToHex(plan.fingerprint.view()),
                                                   " is not registered here; register it first")),
        "NAMESPACE_UNKNOWN");
  }
  const absl::StatusOr<KeyRules> rules = KeyRulesOf(*name_space);
  CAIRN_CHECK_OK(rules.status());  // It was registered.
  const absl::StatusOr<Retention> retention =
      RetentionFromProto(request.retention(), parts_.clock->WallNow());
  if (!retention.ok()) return InField("retention", retention.status());
  const absl::StatusOr<int64_t> pin_until =
      PinUntil(request.retention().pin_ms(), parts_.clock->WallNow());
  if (!pin_until.ok()) return InField("retention", pin_until.status());
  absl::StatusOr<ReserveQuery> query = PlanReserve(*parts_.hasher, *rules, fields);
  if (!query.ok()) return query.status();
  plan.query = *std::move(query);
  plan.key_scheme = rules->key_scheme;
  if (absl::Status status = CheckPublic(plan); !status.ok()) return status;
  // A listed key says nothing of blocks that do not lead to it.
  const bool bound = parts_.public_scope != nullptr && plan.tenant == kPublicTenant;
  if (bound && plan.query.mismatch_at.has_value()) plan.query.mismatch_at = 0;
  plan.query.retention = *retention;
  plan.query.stays_until_unix_ms = *pin_until;
  plan.query.provenance = {.writer = WriterDigest(caller.id),
                           .written_unix_ms = absl::ToUnixMillis(parts_.clock->WallNow())};
  return plan;
}

absl::Status NodeCalls::Commit(const Caller& caller, const v1::CommitRequest& request,
                               v1::CommitResponse* response) {
  const absl::StatusOr<TokenId> token = IdFromProto<TokenId>(request.token(), "token");
  if (!token.ok()) return token.status();
  if (request.pieces_size() > 0) {  // None asks what is missing.
    const auto pieces = static_cast<size_t>(request.pieces_size());
    if (absl::Status status = CheckCount("pieces", pieces, kPiecesPerCommitMax); !status.ok()) {
      return status;
    }
  }
  std::vector<SegmentRun> runs;
  runs.reserve(static_cast<size_t>(request.pieces_size()));
  for (int i = 0; i < request.pieces_size(); ++i) {
    absl::StatusOr<SegmentRun> run = RunFromProto(request.pieces(i));
    if (!run.ok()) return InField(absl::StrCat("pieces[", i, "]"), run.status());
    runs.push_back(*std::move(run));
  }
  const absl::StatusOr<CommitAnswer> answer = parts_.store->Commit(caller.tenant, *token, runs);
  if (!answer.ok()) return answer.status();
  ToMessage(*answer, response);
  return absl::OkStatus();
}

absl::Status NodeCalls::Abort(const Caller& caller, const v1::AbortRequest& request,
                              v1::AbortResponse*) {
  const absl::StatusOr<TokenId> token = IdFromProto<TokenId>(request.token(), "token");
  if (!token.ok()) return token.status();
  return parts_.store->Abort(caller.tenant, *token);
}

}  // namespace cairn::node
