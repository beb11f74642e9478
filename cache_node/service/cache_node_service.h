// CacheNodeService: the gRPC face of NodeCalls and of the streams.
//
// Only shells: resolve the caller, choose the thread, run, map the status, count and time. What may
// remake memory runs on one executor; what removes, and so may hash or wait for the disk tier, on
// another, so that a disk that hangs holds up nothing else; the rest on gRPC's threads. Write is
// left to GenericService. Borrows its parts, which must outlive the server.
#pragma once

#include <grpcpp/grpcpp.h>

#include <string>

#include "cache_node/pull/pull_calls.h"
#include "cache_node/service/feed_stream.h"
#include "cache_node/service/get_frames.h"
#include "cache_node/service/get_stream.h"
#include "cache_node/service/node_calls.h"
#include "cache_node/service/rpc_metrics.h"
#include "cache_node/service/settled_waiter.h"
#include "cache_node/service/waiting_calls.h"
#include "cairn/v1/cache_node.grpc.pb.h"
#include "common/base/clock.h"
#include "common/rpc/caller_resolver.h"
#include "common/security/audit_trail.h"
#include "common/server/executor.h"

namespace cairn::node {

class CacheNodeService final
    : public v1::CacheNode::WithRawCallbackMethod_Get<
          v1::CacheNode::WithGenericMethod_Write<v1::CacheNode::CallbackService>> {
 public:
  struct Parts {
    NodeCalls* calls = nullptr;
    PullCalls* pulls = nullptr;
    BlockStore* store = nullptr;
    const CallerResolver* callers = nullptr;
    TenantRates* rates = nullptr;  // Not null.
    AuditTrail* audit = nullptr;   // Not null.
    const NodeFacts* facts = nullptr;
    RpcMetrics* metrics = nullptr;
    Executor* executor = nullptr;
    Executor* removals = nullptr;
    WaitingCalls* waiting = nullptr;
    SettledWaiter* waiter = nullptr;
    const Clock* clock = nullptr;
    PinCount* get_pins = nullptr;
    GetStream::Parts get;
    FeedStream::Parts feed;
  };

  explicit CacheNodeService(const Parts& parts) : parts_(parts) {}

  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;

  Reactor* RegisterNamespace(Context* context, const v1::RegisterNamespaceRequest* request,
                             v1::RegisterNamespaceResponse* response) override;
  Reactor* RetireNamespace(Context* context, const v1::RetireNamespaceRequest* request,
                           v1::RetireNamespaceResponse* response) override;
  Reactor* ClearScope(Context* context, const v1::ClearScopeRequest* request,
                      v1::ClearScopeResponse* response) override;
  Reactor* PurgeWriter(Context* context, const v1::PurgeWriterRequest* request,
                       v1::PurgeWriterResponse* response) override;
  Reactor* Lookup(Context* context, const v1::LookupRequest* request,
                  v1::LookupResponse* response) override;
  Reactor* GetLease(Context* context, const v1::GetLeaseRequest* request,
                    v1::GetLeaseResponse* response) override;
  Reactor* RenewLease(Context* context, const v1::RenewLeaseRequest* request,
                      v1::RenewLeaseResponse* response) override;
  Reactor* EndLease(Context* context, const v1::EndLeaseRequest* request,
                    v1::EndLeaseResponse* response) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* Get(Context* context,
                                                  const grpc::ByteBuffer* request) override;
  Reactor* Reserve(Context* context, const v1::ReserveRequest* request,
                   v1::ReserveResponse* response) override;
  Reactor* Commit(Context* context, const v1::CommitRequest* request,
                  v1::CommitResponse* response) override;
  Reactor* Abort(Context* context, const v1::AbortRequest* request,
                 v1::AbortResponse* response) override;
  Reactor* ReportMismatch(Context* context, const v1::ReportMismatchRequest* request,
                          v1::ReportMismatchResponse* response) override;
  Reactor* Delete(Context* context, const v1::DeleteRequest* request,
                  v1::DeleteResponse* response) override;
  Reactor* PinBlocks(Context* context, const v1::PinBlocksRequest* request,
                     v1::PinBlocksResponse* response) override;
  Reactor* PullBlocks(Context* context, const v1::PullBlocksRequest* request,
                      v1::PullBlocksResponse* response) override;
  Reactor* DescribeBlocks(Context* context, const v1::DescribeBlocksRequest* request,
                          v1::DescribeBlocksResponse* response) override;
  Reactor* ExplainPrompt(Context* context, const v1::ExplainPromptRequest* request,
                         v1::ExplainPromptResponse* response) override;
  Reactor* OpenLocal(Context* context, const v1::OpenLocalRequest* request,
                     v1::OpenLocalResponse* response) override;
  grpc::ServerBidiReactor<v1::WatchBlocksRequest, v1::WatchBlocksResponse>* WatchBlocks(
      Context* context) override;
  Reactor* Describe(Context* context, const v1::DescribeRequest* request,
                    v1::DescribeResponse* response) override;

 private:
  // What one method of NodeCalls does.
  template <typename Request, typename Response>
  using Method = absl::Status (NodeCalls::*)(const Caller&, const Request&, Response*);

  absl::StatusOr<Caller> Resolve(const Context& context, RpcMethod name) const;
  // Leaves an audit line, where the rules want one.
  template <typename Request>
  void Audit(RpcMethod name, const absl::StatusOr<Caller>& caller, const Request& request,
             const absl::Status& outcome) const;
  template <typename Request, typename Response>
  absl::Status Run(RpcMethod name, const Context& context, Method<Request, Response> method,
                   const Request& request, Response* response) const;
  // On this thread.
  template <typename Request, typename Response>
  Reactor* RunHere(RpcMethod name, Context* context, Method<Request, Response> method,
                   const Request& request, Response* response) const;
  // On an executor; RESOURCE_EXHAUSTED with a retry delay when its queue is full.
  template <typename Request, typename Response>
  Reactor* RunOn(Executor* executor, RpcMethod name, Context* context,
                 Method<Request, Response> method, const Request* request,
                 Response* response) const;
  absl::StatusOr<std::unique_ptr<GetFrames>> MakeGetFrames(const absl::StatusOr<Caller>& caller,
                                                           const grpc::ByteBuffer& bytes) const;

  const Parts parts_;
};

}  // namespace cairn::node
