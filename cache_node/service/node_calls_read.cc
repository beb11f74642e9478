#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cache_node/service/node_calls.h"
#include "cache_node/service/request_hash.h"
#include "cache_node/service/store_messages.h"
#include "common/base/check.h"
#include "common/rpc/field_status.h"
#include "common/rpc/id_conversion.h"
#include "common/rpc/prompt_tenant.h"
#include "common/wire/limits.h"

namespace cairn::node {
namespace {

struct NamedSegment {
  BlockKey key;
  SegmentId segment;
};

absl::StatusOr<NamedSegment> SegmentFromProto(const v1::SegmentRef& message) {
  const absl::StatusOr<BlockKey> key = IdFromProto<BlockKey>(message.key(), "key");
  if (!key.ok()) return key.status();
  return NamedSegment{
      .key = *key,
      .segment = {.group = message.group(), .slice = message.slice(), .layer = message.layer()}};
}

}  // namespace

absl::StatusOr<std::optional<NodeCalls::PendingLookup>> NodeCalls::BeginLookup(
    const Caller& caller, const v1::LookupRequest& request, v1::LookupResponse* response) {
  if (request.has_lease()) {
    if (absl::Status status = DrainStatus(); !status.ok()) return status;
  }
  const absl::StatusOr<Fingerprint> fingerprint = FingerprintFromProto(request.fingerprint());
  if (!fingerprint.ok()) return fingerprint.status();
  const absl::StatusOr<std::string> tenant = TenantOfPrompts(
      {request.prompts().data(), static_cast<size_t>(request.prompts_size())}, caller);
  if (!tenant.ok()) return tenant.status();
  if (absl::Status status = Admit(*tenant); !status.ok()) return status;
  absl::StatusOr<LookupPlan> plan = MakeLookupPlan(
      request, caller, *tenant, FindNamespace(*tenant, *fingerprint), *parts_.hasher);
  if (!plan.ok()) return plan.status();
  plan->fingerprint = KnownOrNone(*tenant, *fingerprint);
  const uint32_t readers = plan->query.lease.has_value() ? plan->query.lease->readers : 0;
  PendingLookup lookup{
      .plan = *std::move(plan), .turn = {}, .held = HeldLease(parts_.store, *tenant, readers)};
  if (request.has_lease()) {
    absl::StatusOr<RequestMemory::Turn> turn = parts_.memory->Begin(
        RequestOwnerOf(caller, *tenant), request.request_id(), RequestHash("Lookup", request));
    if (!turn.ok()) return turn.status();
    if (turn->answer().has_value()) {
      CAIRN_CHECK(response->ParseFromString(*turn->answer()));
      return std::nullopt;
    }
    lookup.turn = *std::move(turn);
  } else if (!request.request_id().empty()) {
    return absl::InvalidArgumentError(
        "request_id: goes with a lease only; a probe is repeated freely");
  }
  return lookup;
}

bool NodeCalls::TryLookup(PendingLookup& lookup, bool last, v1::LookupResponse* response) {
  if (!last && IsPending(Probe(lookup))) return false;
  LookupQuery& query = lookup.plan.query;
  query.resume = lookup.held.id();
  const LookupAnswer answer =
      parts_.store->Lookup(lookup.plan.tenant, lookup.plan.fingerprint, query);
  lookup.held.Hold(answer.lease);
  ToMessage(answer, response);
  lookup.turn.Remember(response->SerializeAsString());
  lookup.held.Release();
  return true;
}

LookupAnswer NodeCalls::Probe(PendingLookup& lookup) const {
  LookupQuery& query = lookup.plan.query;
  const std::optional<LeaseWish> lease = query.lease;
  const bool touch = std::exchange(query.touch, false);
  query.counted = false;
  // What is being written needs no lease until it is there; what is loaded must not leave again
  // before the rest of it came.
  if (!parts_.loads) query.lease.reset();
  query.hold_pending = query.lease.has_value();
  query.resume = lookup.held.id();
  LookupAnswer answer = parts_.store->Lookup(lookup.plan.tenant, lookup.plan.fingerprint, query);
  lookup.held.Hold(answer.lease);
  query.hold_pending = false;
  query.counted = true;
  query.touch = touch;
  query.lease = lease;
  return answer;
}

absl::StatusOr<LeaseId> NodeCalls::BeginGetLease(const v1::GetLeaseRequest& request) {
  if (absl::Status status = CheckWait(request.wait_ms()); !status.ok()) return status;
  return IdFromProto<LeaseId>(request.lease(), "lease");
}

std::optional<absl::Status> NodeCalls::TryGetLease(const Caller& caller, const LeaseId& lease,
                                                   bool last, v1::GetLeaseResponse* response) {
  const absl::StatusOr<LeaseStatus> status = parts_.store->GetLease(caller.tenant, lease);
  if (!status.ok()) return status.status();
  if (!status->complete && !last) return std::nullopt;
  ToMessage(*status, response);
  return absl::OkStatus();
}

absl::Status NodeCalls::RenewLease(const Caller& caller, const v1::RenewLeaseRequest& request,
                                   v1::RenewLeaseResponse* response) {
  const absl::StatusOr<LeaseId> lease = IdFromProto<LeaseId>(request.lease(), "lease");
  if (!lease.ok()) return lease.status();
  const absl::StatusOr<absl::Duration> ttl = parts_.store->RenewLease(
      caller.tenant, *lease, request.reader(), absl::Milliseconds(request.ttl_ms()));
  if (!ttl.ok()) return ttl.status();
  response->set_ttl_ms(ToMilliseconds(*ttl));
  return absl::OkStatus();
}

absl::Status NodeCalls::EndLease(const Caller& caller, const v1::EndLeaseRequest& request,
                                 v1::EndLeaseResponse* response) {
  const absl::StatusOr<LeaseId> lease = IdFromProto<LeaseId>(request.lease(), "lease");
  if (!lease.ok()) return lease.status();
  if (request.usable_blocks_size() > static_cast<int>(kPromptsPerLookupMax) ||
      request.mismatches_size() > static_cast<int>(kMismatchesPerEndMax)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "usable_blocks: ", request.usable_blocks_size(), ", at most ", kPromptsPerLookupMax,
        "; mismatches: ", request.mismatches_size(), ", at most ", kMismatchesPerEndMax));
  }
  std::vector<NamedSegment> mismatches;
  for (int i = 0; i < request.mismatches_size(); ++i) {
    absl::StatusOr<NamedSegment> segment = SegmentFromProto(request.mismatches(i));
    if (!segment.ok()) return InField(absl::StrCat("mismatches[", i, "]"), segment.status());
    mismatches.push_back(*segment);
  }
  if (!mismatches.empty()) {
    const absl::StatusOr<LeaseStatus> status = parts_.store->GetLease(caller.tenant, *lease);
    if (!status.ok()) return status.status();
    // While the share still holds the blocks. What a report comes to does not keep a lease open.
    for (const NamedSegment& one : mismatches) {
      const absl::StatusOr<bool> confirmed =
          parts_.store->ReportMismatch(caller.tenant, status->fingerprint, one.key, one.segment);
      if (absl::IsInvalidArgument(confirmed.status())) return confirmed.status();
    }
  }
  const absl::StatusOr<LeaseStatus> ended =
      parts_.store->EndLease(caller.tenant, *lease, request.reader(), request.usable_blocks());
  if (!ended.ok()) return ended.status();
  response->set_complete(ended->complete);
  return absl::OkStatus();
}

absl::Status NodeCalls::ReportMismatch(const Caller& caller,
                                       const v1::ReportMismatchRequest& request,
                                       v1::ReportMismatchResponse* response) {
  const absl::StatusOr<Fingerprint> fingerprint = FingerprintFromProto(request.fingerprint());
  if (!fingerprint.ok()) return fingerprint.status();
  const absl::StatusOr<NamedSegment> segment = SegmentFromProto(request.segment());
  if (!segment.ok()) return InField("segment", segment.status());
  const absl::StatusOr<bool> confirmed = parts_.store->ReportMismatch(
      caller.tenant, KnownOrNone(caller.tenant, *fingerprint), segment->key, segment->segment);
  if (!confirmed.ok()) return confirmed.status();
  response->set_confirmed(*confirmed);
  return absl::OkStatus();
}

}  // namespace cairn::node
