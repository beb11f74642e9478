// NodeCalls: what each call of the cache node does, without RPC: checks the message, asks the
// store, fills the answer.
//
// The service's shells resolve who calls, choose the thread and map the status. Thread-safe.
// Borrows its parts, which must outlive it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cache_node/local/node_local.h"
#include "cache_node/pull/pull_fences.h"
#include "cache_node/service/held_lease.h"
#include "cache_node/service/lookup_plan.h"
#include "cache_node/service/node_facts.h"
#include "cache_node/service/request_memory.h"
#include "cache_node/store/block_store.h"
#include "cache_node/store/store_counters.h"
#include "cache_node/tenants/public_scope.h"
#include "cache_node/tenants/tenant_rates.h"
#include "cairn/v1/cache_node.pb.h"
#include "common/base/clock.h"
#include "common/identity/block_hasher.h"
#include "common/rpc/caller_identity.h"

namespace cairn::node {

class NodeCalls {
 public:
  // Describe lists at most so many namespaces and tenants, so that its answer stays one message.
  static constexpr size_t kDescribedMax = 1024;

  struct Parts {
    BlockStore* store = nullptr;
    const StoreCounters* counters = nullptr;
    const BlockHasher* hasher = nullptr;
    const Clock* clock = nullptr;
    RequestMemory* memory = nullptr;
    TenantRates* rates = nullptr;               // Null: nobody has a limit.
    const PublicScope* public_scope = nullptr;  // Null: the tenant `public` is one like others.
    const NodeFacts* facts = nullptr;
    PullFences* fences = nullptr;  // Told of what is removed; null: nothing is pulled.
    NodeLocal* local = nullptr;
    bool loads = false;  // There is a disk tier or a device: a lookup may wait for loads.
  };

  explicit NodeCalls(const Parts& parts) : parts_(parts) {}

  absl::Status RegisterNamespace(const Caller& caller, const v1::RegisterNamespaceRequest& request,
                                 v1::RegisterNamespaceResponse* response);
  // These block for as long as the removal takes.
  absl::Status RetireNamespace(const Caller& caller, const v1::RetireNamespaceRequest& request,
                               v1::RetireNamespaceResponse* response);
  absl::Status ClearScope(const Caller& caller, const v1::ClearScopeRequest& request,
                          v1::ClearScopeResponse* response);
  absl::Status PurgeWriter(const Caller& caller, const v1::PurgeWriterRequest& request,
                           v1::PurgeWriterResponse* response);

  // A lookup that may be tried again while it waits.
  struct PendingLookup {
    LookupPlan plan;
    RequestMemory::Turn turn;
    HeldLease held;
  };
  // Checks the request. Nothing: `response` is what an earlier request with this id was answered.
  absl::StatusOr<std::optional<PendingLookup>> BeginLookup(const Caller& caller,
                                                           const v1::LookupRequest& request,
                                                           v1::LookupResponse* response);
  // False: not `last`, and a block is on its way; nothing was counted, and what was leased is
  // `held`.
  bool TryLookup(PendingLookup& lookup, bool last, v1::LookupResponse* response);

  absl::StatusOr<LeaseId> BeginGetLease(const v1::GetLeaseRequest& request);
  // Nothing: not `last`, and readers have not ended.
  std::optional<absl::Status> TryGetLease(const Caller& caller, const LeaseId& lease, bool last,
                                          v1::GetLeaseResponse* response);

  absl::Status RenewLease(const Caller& caller, const v1::RenewLeaseRequest& request,
                          v1::RenewLeaseResponse* response);
  // Blocks for hashing when the reader reports mismatches.
  absl::Status EndLease(const Caller& caller, const v1::EndLeaseRequest& request,
                        v1::EndLeaseResponse* response);

  // Blocks when a memory segment must change its class.
  absl::Status Reserve(const Caller& caller, const v1::ReserveRequest& request,
                       v1::ReserveResponse* response);
  absl::Status Commit(const Caller& caller, const v1::CommitRequest& request,
                      v1::CommitResponse* response);
  absl::Status Abort(const Caller& caller, const v1::AbortRequest& request,
                     v1::AbortResponse* response);

  // These block: for hashing, and until the disk tier remembers what is gone.
  absl::Status ReportMismatch(const Caller& caller, const v1::ReportMismatchRequest& request,
                              v1::ReportMismatchResponse* response);
  absl::Status Delete(const Caller& caller, const v1::DeleteRequest& request,
                      v1::DeleteResponse* response);

  absl::Status PinBlocks(const Caller& caller, const v1::PinBlocksRequest& request,
                         v1::PinBlocksResponse* response);

  // Blocks for a walk over all blocks.
  absl::Status ExplainPrompt(const Caller& caller, const v1::ExplainPromptRequest& request,
                             v1::ExplainPromptResponse* response);

  absl::Status OpenLocal(const Caller& caller, const v1::OpenLocalRequest& request,
                         v1::OpenLocalResponse* response);

  absl::Status Describe(const Caller& caller, const v1::DescribeRequest& request,
                        v1::DescribeResponse* response);

 private:
  struct ReservePlan {
    std::string tenant;
    Fingerprint fingerprint;
    KeyScheme key_scheme = KeyScheme::kCairn;
    ReserveQuery query;
  };

  absl::Status DrainStatus() const;
  // The same, or one that no namespace has: to a tenant that has no label for a namespace it is
  // as unknown as one that nobody registered.
  Fingerprint KnownOrNone(absl::string_view tenant, const Fingerprint& fingerprint) const;
  // Null when it is not known to the tenant.
  const Namespace* FindNamespace(absl::string_view tenant, const Fingerprint& fingerprint) const;
  absl::Status ExplainNamespace(absl::string_view tenant, const v1::ExplainPromptRequest& request,
                                v1::ExplainPromptResponse* response) const;
  LookupAnswer Probe(PendingLookup& lookup) const;
  // One request of the tenant's, within its rates.
  absl::Status Admit(absl::string_view tenant) const;
  uint64_t ReservedBytes(const ReservePlan& plan, const ReserveAnswer& answer) const;
  absl::StatusOr<ReservePlan> MakePlan(const v1::ReserveRequest& request,
                                       const Caller& caller) const;
  // Of the tenant `public` only what the operator lists is taken.
  absl::Status CheckPublic(const ReservePlan& plan) const;
  absl::StatusOr<ReserveAnswer> ReservePlanned(const ReservePlan& plan) const;

  const Parts parts_;
};

}  // namespace cairn::node
