#include "cache_node/service/node_calls.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cache_node/service/store_messages.h"
#include "cache_node/store/scope_digest.h"
#include "cache_node/store/writer_digest.h"
#include "common/base/hex.h"
#include "common/rpc/field_status.h"
#include "common/rpc/id_conversion.h"
#include "common/rpc/namespace_conversion.h"
#include "common/rpc/prompt_conversion.h"
#include "common/wire/limits.h"

namespace cairn::node {
namespace {

// As the store says it of a namespace that nobody registered.
absl::Status UnknownNamespace(const Fingerprint& fingerprint) {
  return absl::FailedPreconditionError(
      absl::StrCat("namespace ", ToHex(fingerprint.view()), " is not registered here"));
}

}  // namespace

absl::Status NodeCalls::RegisterNamespace(const Caller& caller,
                                          const v1::RegisterNamespaceRequest& request,
                                          v1::RegisterNamespaceResponse* response) {
  if (request.name().empty() || request.name().size() > kNameBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("name: ", request.name().size(), " bytes, must be from 1 to ", kNameBytesMax));
  }
  const absl::StatusOr<Namespace> fields = NamespaceFromProto(request.fields());
  if (!fields.ok()) return InField("fields", fields.status());
  const absl::StatusOr<RegisteredNamespace> registered =
      parts_.store->RegisterNamespace(caller.tenant, request.name(), *fields);
  if (!registered.ok()) return registered.status();
  response->set_fingerprint(std::string(registered->fingerprint.view()));
  response->set_created(registered->created);
  response->set_block_bytes(registered->block_bytes);
  response->set_tenant(caller.tenant);
  return absl::OkStatus();
}

absl::Status NodeCalls::RetireNamespace(const Caller& caller,
                                        const v1::RetireNamespaceRequest& request,
                                        v1::RetireNamespaceResponse* response) {
  if (!caller.Is(Role::kAdmin)) {
    return absl::PermissionDeniedError(
        absl::StrCat("retiring a namespace is an admin's; ", caller.id, " is none"));
  }
  const absl::StatusOr<Fingerprint> fingerprint = FingerprintFromProto(request.fingerprint());
  if (!fingerprint.ok()) return fingerprint.status();
  if (parts_.fences != nullptr) parts_.fences->Retired(*fingerprint, parts_.clock->WallNow());
  const absl::StatusOr<RemovedBlocks> removed = parts_.store->RetireNamespace(*fingerprint);
  if (!removed.ok()) return removed.status();
  response->set_epoch(removed->epoch);
  response->set_blocks(removed->blocks);
  response->set_pinned_bytes(removed->pinned_bytes);
  response->set_done(true);
  return absl::OkStatus();
}

absl::Status NodeCalls::ClearScope(const Caller& caller, const v1::ClearScopeRequest& request,
                                   v1::ClearScopeResponse* response) {
  const absl::StatusOr<Fingerprint> fingerprint = FingerprintFromProto(request.fingerprint());
  if (!fingerprint.ok()) return fingerprint.status();
  absl::StatusOr<Scope> scope = ScopeFromProto(request.scope());
  if (!scope.ok()) return InField("scope", scope.status());
  absl::StatusOr<std::string> tenant = TenantFor(caller, scope->tenant, TenantUse::kWrite);
  if (!tenant.ok()) return InField("scope", tenant.status());
  scope->tenant = *tenant;
  if (!parts_.store->IsKnownTo(*tenant, *fingerprint)) return UnknownNamespace(*fingerprint);
  const BlockKey digest = ScopeDigest(*scope);
  if (parts_.fences != nullptr) {
    parts_.fences->Cleared(*fingerprint, *tenant, digest, parts_.clock->WallNow());
  }
  const absl::StatusOr<RemovedBlocks> removed =
      parts_.store->ClearScope(*tenant, *fingerprint, digest);
  if (!removed.ok()) return removed.status();
  response->set_blocks(removed->blocks);
  response->set_pinned_bytes(removed->pinned_bytes);
  return absl::OkStatus();
}

absl::Status NodeCalls::PurgeWriter(const Caller& caller, const v1::PurgeWriterRequest& request,
                                    v1::PurgeWriterResponse* response) {
  if (!caller.Is(Role::kAdmin)) {
    return absl::PermissionDeniedError(
        absl::StrCat("purging a writer is an admin's; ", caller.id, " is none"));
  }
  if (request.writer().empty() || request.writer().size() > kNameBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("writer: ", request.writer().size(),
                                                   " bytes, must be from 1 to ", kNameBytesMax));
  }
  if (request.since_unix_ms() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("since_unix_ms: ", request.since_unix_ms(), ", must not be negative"));
  }
  const uint64_t writer = WriterDigest(request.writer());
  const absl::Time now = parts_.clock->WallNow();
  if (parts_.fences != nullptr) parts_.fences->Purged(writer, request.since_unix_ms(), now);
  const absl::StatusOr<RemovedBlocks> removed =
      parts_.store->PurgeWriter(writer, request.since_unix_ms(), absl::ToUnixMillis(now));
  if (!removed.ok()) return removed.status();
  response->set_blocks(removed->blocks);
  response->set_done(true);
  return absl::OkStatus();
}

absl::Status NodeCalls::Delete(const Caller& caller, const v1::DeleteRequest& request,
                               v1::DeleteResponse* response) {
  const absl::StatusOr<Fingerprint> fingerprint = FingerprintFromProto(request.fingerprint());
  if (!fingerprint.ok()) return fingerprint.status();
  const absl::StatusOr<std::vector<BlockKey>> keys =
      KeysFromProto(request.keys(), "keys", kKeysPerDeleteMax);
  if (!keys.ok()) return keys.status();
  if (absl::Status status = CheckCount("keys", keys->size(), kKeysPerDeleteMax); !status.ok()) {
    return status;
  }
  if (absl::Status status = CheckNoDuplicates(*keys, "keys"); !status.ok()) return status;
  const absl::StatusOr<std::vector<bool>> removed =
      parts_.store->Delete(caller.tenant, KnownOrNone(caller.tenant, *fingerprint), *keys);
  if (!removed.ok()) return removed.status();
  for (const bool one : *removed) response->add_removed(one);
  return absl::OkStatus();
}

absl::Status NodeCalls::OpenLocal(const Caller& caller, const v1::OpenLocalRequest&,
                                  v1::OpenLocalResponse* response) {
  if (absl::Status status = DrainStatus(); !status.ok()) return status;
  absl::StatusOr<v1::OpenLocalResponse> opened = parts_.local->Open(caller);
  if (!opened.ok()) return opened.status();
  *response = *std::move(opened);
  return absl::OkStatus();
}

absl::Status NodeCalls::Describe(const Caller& caller, const v1::DescribeRequest& request,
                                 v1::DescribeResponse* response) {
  parts_.facts->FillInfo(response->mutable_node());
  parts_.facts->FillLoad(response->mutable_load());
  parts_.facts->FillDecode(response);
  response->set_tenant(caller.tenant);
  for (const NamespaceStatus& status : parts_.store->Namespaces(caller.tenant)) {
    if (static_cast<size_t>(response->namespaces_size()) == kDescribedMax) break;
    ToMessage(status, response->add_namespaces());
  }
  for (const TenantStatus& status : parts_.store->Tenants()) {
    if (!caller.Is(Role::kAdmin) && !caller.MayActFor(status.tenant)) continue;
    if (static_cast<size_t>(response->tenants_size()) == kDescribedMax) break;
    ToMessage(status, response->add_tenants());
  }
  for (const v1::MemoryTerm& term : parts_.facts->memory().terms) *response->add_memory() = term;
  response->set_memory_limit_bytes(parts_.facts->memory().limit_bytes);
  // Sums over all tenants' keys.
  if (request.shards() && (caller.Is(Role::kAdmin) || caller.Is(Role::kRouter))) {
    const std::vector<ShardSums> shards = parts_.store->Shards();
    for (size_t i = 0; i < shards.size(); ++i) {
      v1::ShardDigest* shard = response->add_shards();
      shard->set_shard(static_cast<uint32_t>(i));
      ToMessage(shards[i], shard);
    }
  }
  const StoreStatus status = parts_.store->Status();
  response->set_blocks(status.blocks);
  response->set_quarantined(parts_.counters->quarantined_blocks.load());
  response->set_pins(status.pins);
  return absl::OkStatus();
}

Fingerprint NodeCalls::KnownOrNone(absl::string_view tenant, const Fingerprint& fingerprint) const {
  return parts_.store->IsKnownTo(tenant, fingerprint) ? fingerprint : Fingerprint();
}

const Namespace* NodeCalls::FindNamespace(absl::string_view tenant,
                                          const Fingerprint& fingerprint) const {
  if (!parts_.store->IsKnownTo(tenant, fingerprint)) return nullptr;
  return parts_.store->FindNamespace(fingerprint);
}

absl::Status NodeCalls::DrainStatus() const {
  if (!parts_.facts->draining()) return absl::OkStatus();
  return absl::UnavailableError("the node is draining; use another one");
}

}  // namespace cairn::node
