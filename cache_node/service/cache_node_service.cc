#include "cache_node/service/cache_node_service.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cache_node/service/refusal.h"
#include "cache_node/service/waiting_reply.h"
#include "common/rpc/retry_status.h"
#include "common/rpc/status_mapping.h"
#include "common/security/audit.h"
#include "common/wire/message_codec.h"

namespace cairn::node {
namespace {

constexpr char kGone[] = "the client is gone";

using Reactor = grpc::ServerUnaryReactor;

constexpr absl::Duration kBusyRetryAfter = absl::Milliseconds(50);

Reactor* Finish(grpc::CallbackServerContext* context, RpcMetrics::Call call,
                const absl::Status& status) {
  Reactor* const reactor = context->DefaultReactor();
  call.End(status.code());
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

}  // namespace

absl::StatusOr<Caller> CacheNodeService::Resolve(const Context& context, RpcMethod name) const {
  return parts_.callers->Resolve(context, absl::StrCat("CacheNode/", RpcMethodName(name)));
}

template <typename Request>
void CacheNodeService::Audit(RpcMethod name, const absl::StatusOr<Caller>& caller,
                             const Request& request, const absl::Status& outcome) const {
  const std::string method = absl::StrCat("CacheNode/", RpcMethodName(name));
  if (!IsAudited(method)) return;
  std::string about;
  if constexpr (requires { request.writer(); }) {
    about = AboutWriter(request.writer(), request.since_unix_ms());
  } else if constexpr (requires { request.fingerprint(); }) {
    about = AboutNamespace(request.fingerprint());
  } else if constexpr (requires { request.fields(); }) {
    about = AboutLabel(request.name());
  }
  parts_.audit->Add(method, caller, about, outcome);
}

template <typename Request, typename Response>
absl::Status CacheNodeService::Run(RpcMethod name, const Context& context,
                                   Method<Request, Response> method, const Request& request,
                                   Response* response) const {
  if (context.IsCancelled()) return absl::CancelledError(kGone);
  const absl::StatusOr<Caller> caller = Resolve(context, name);
  absl::Status status = caller.status();
  if (status.ok()) status = (parts_.calls->*method)(*caller, request, response);
  Audit(name, caller, request, status);
  return status;
}

template <typename Request, typename Response>
Reactor* CacheNodeService::RunHere(RpcMethod name, Context* context,
                                   Method<Request, Response> method, const Request& request,
                                   Response* response) const {
  RpcMetrics::Call call = parts_.metrics->Begin(name);
  return Finish(context, std::move(call), Run(name, *context, method, request, response));
}

template <typename Request, typename Response>
Reactor* CacheNodeService::RunOn(Executor* executor, RpcMethod name, Context* context,
                                 Method<Request, Response> method, const Request* request,
                                 Response* response) const {
  // Shared with the task, which a full queue destroys unrun.
  auto call = std::make_shared<RpcMetrics::Call>(parts_.metrics->Begin(name));
  Reactor* const reactor = context->DefaultReactor();
  // The call's messages and context live until Finish.
  const absl::Status submitted = executor->Submit(
      [this, name, context, method, request, response, call, reactor]() {
        const absl::Status status = Run(name, *context, method, *request, response);
        call->End(status.code());
        reactor->Finish(ToGrpcStatus(status));
      },
      request->SpaceUsedLong());
  if (submitted.ok()) return reactor;
  const absl::Status refused =
      absl::IsResourceExhausted(submitted) ? WithRetryAfter(submitted, kBusyRetryAfter) : submitted;
  call->End(refused.code());
  reactor->Finish(ToGrpcStatus(refused));
  return reactor;
}

Reactor* CacheNodeService::RegisterNamespace(Context* context,
                                             const v1::RegisterNamespaceRequest* request,
                                             v1::RegisterNamespaceResponse* response) {
  return RunHere(RpcMethod::kRegisterNamespace, context, &NodeCalls::RegisterNamespace, *request,
                 response);
}

Reactor* CacheNodeService::RetireNamespace(Context* context,
                                           const v1::RetireNamespaceRequest* request,
                                           v1::RetireNamespaceResponse* response) {
  return RunOn(parts_.removals, RpcMethod::kRetireNamespace, context, &NodeCalls::RetireNamespace,
               request, response);
}

Reactor* CacheNodeService::ClearScope(Context* context, const v1::ClearScopeRequest* request,
                                      v1::ClearScopeResponse* response) {
  return RunOn(parts_.removals, RpcMethod::kClearScope, context, &NodeCalls::ClearScope, request,
               response);
}

Reactor* CacheNodeService::PurgeWriter(Context* context, const v1::PurgeWriterRequest* request,
                                       v1::PurgeWriterResponse* response) {
  return RunOn(parts_.removals, RpcMethod::kPurgeWriter, context, &NodeCalls::PurgeWriter, request,
               response);
}

Reactor* CacheNodeService::Lookup(Context* context, const v1::LookupRequest* request,
                                  v1::LookupResponse* response) {
  RpcMetrics::Call call = parts_.metrics->Begin(RpcMethod::kLookup);
  if (context->IsCancelled()) return Finish(context, std::move(call), absl::CancelledError(kGone));
  const absl::StatusOr<Caller> caller = Resolve(*context, RpcMethod::kLookup);
  if (!caller.ok()) return Finish(context, std::move(call), caller.status());
  absl::StatusOr<std::optional<NodeCalls::PendingLookup>> begun =
      parts_.calls->BeginLookup(*caller, *request, response);
  if (!begun.ok()) return Finish(context, std::move(call), begun.status());
  if (!begun->has_value()) return Finish(context, std::move(call), absl::OkStatus());
  const absl::Duration wait = (*begun)->plan.wait;
  if (wait == absl::ZeroDuration()) {
    parts_.calls->TryLookup(**begun, true, response);
    return Finish(context, std::move(call), absl::OkStatus());
  }
  return WaitingReply::Start(parts_.waiting, parts_.waiter, parts_.clock->SteadyNow() + wait,
                             std::move(call),
                             [calls = parts_.calls, lookup = **std::move(begun),
                              response](bool last) mutable -> std::optional<absl::Status> {
                               if (!calls->TryLookup(lookup, last, response)) return std::nullopt;
                               return absl::OkStatus();
                             });
}

Reactor* CacheNodeService::GetLease(Context* context, const v1::GetLeaseRequest* request,
                                    v1::GetLeaseResponse* response) {
  RpcMetrics::Call call = parts_.metrics->Begin(RpcMethod::kGetLease);
  const absl::StatusOr<Caller> caller = Resolve(*context, RpcMethod::kGetLease);
  if (!caller.ok()) return Finish(context, std::move(call), caller.status());
  const absl::StatusOr<LeaseId> lease = parts_.calls->BeginGetLease(*request);
  if (!lease.ok()) return Finish(context, std::move(call), lease.status());
  return WaitingReply::Start(parts_.waiting, parts_.waiter,
                             parts_.clock->SteadyNow() + absl::Milliseconds(request->wait_ms()),
                             std::move(call),
                             [calls = parts_.calls, caller = *caller, lease = *lease, response,
                              waits = request->wait_ms() > 0](bool last) {
                               return calls->TryGetLease(caller, lease, last || !waits, response);
                             });
}

Reactor* CacheNodeService::RenewLease(Context* context, const v1::RenewLeaseRequest* request,
                                      v1::RenewLeaseResponse* response) {
  return RunHere(RpcMethod::kRenewLease, context, &NodeCalls::RenewLease, *request, response);
}

Reactor* CacheNodeService::EndLease(Context* context, const v1::EndLeaseRequest* request,
                                    v1::EndLeaseResponse* response) {
  if (request->mismatches().empty()) {
    return RunHere(RpcMethod::kEndLease, context, &NodeCalls::EndLease, *request, response);
  }
  return RunOn(parts_.removals, RpcMethod::kEndLease, context, &NodeCalls::EndLease, request,
               response);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* CacheNodeService::Get(Context* context,
                                                                  const grpc::ByteBuffer* request) {
  RpcMetrics::Call call = parts_.metrics->Begin(RpcMethod::kGet);
  auto rights = std::make_unique<StreamRights>(parts_.callers, context, "CacheNode/Get");
  absl::StatusOr<std::unique_ptr<GetFrames>> frames = MakeGetFrames(rights->caller(), *request);
  if (frames.ok() && !parts_.get.slots->Take()) {
    frames = WithRetryAfter(
        absl::ResourceExhaustedError(absl::StrCat(
            "Get calls that run at once: ", parts_.get.slots->max(), " already (--gets-max)")),
        kBusyRetryAfter);
  }
  if (!frames.ok()) {
    return new Refusal<grpc::ServerWriteReactor<grpc::ByteBuffer>>(frames.status(),
                                                                   std::move(call));
  }
  return GetStream::Start(parts_.get, context, std::move(rights), *std::move(frames),
                          std::move(call));
}

absl::StatusOr<std::unique_ptr<GetFrames>> CacheNodeService::MakeGetFrames(
    const absl::StatusOr<Caller>& caller, const grpc::ByteBuffer& bytes) const {
  if (!caller.ok()) return caller.status();
  v1::GetRequest request;
  if (absl::Status status = DecodeMessage(bytes, &request); !status.ok()) return status;
  const std::optional<Fingerprint> fingerprint = Fingerprint::FromBytes(request.fingerprint());
  const bool known =
      fingerprint.has_value() && parts_.store->IsKnownTo(caller->tenant, *fingerprint);
  absl::StatusOr<GetPlan> plan =
      MakeGetPlan(request, known ? parts_.store->FindPayloadMap(*fingerprint) : nullptr);
  if (!plan.ok()) return plan.status();
  if (absl::Status status = parts_.rates->Admit(caller->tenant); !status.ok()) return status;
  parts_.rates->Charge(caller->tenant, plan->payload_bytes());
  return std::make_unique<GetFrames>(parts_.store, parts_.get_pins, caller->tenant,
                                     *std::move(plan));
}

Reactor* CacheNodeService::Reserve(Context* context, const v1::ReserveRequest* request,
                                   v1::ReserveResponse* response) {
  return RunOn(parts_.executor, RpcMethod::kReserve, context, &NodeCalls::Reserve, request,
               response);
}

Reactor* CacheNodeService::Commit(Context* context, const v1::CommitRequest* request,
                                  v1::CommitResponse* response) {
  return RunHere(RpcMethod::kCommit, context, &NodeCalls::Commit, *request, response);
}

Reactor* CacheNodeService::Abort(Context* context, const v1::AbortRequest* request,
                                 v1::AbortResponse* response) {
  return RunHere(RpcMethod::kAbort, context, &NodeCalls::Abort, *request, response);
}

Reactor* CacheNodeService::ReportMismatch(Context* context,
                                          const v1::ReportMismatchRequest* request,
                                          v1::ReportMismatchResponse* response) {
  return RunOn(parts_.removals, RpcMethod::kReportMismatch, context, &NodeCalls::ReportMismatch,
               request, response);
}

Reactor* CacheNodeService::Delete(Context* context, const v1::DeleteRequest* request,
                                  v1::DeleteResponse* response) {
  return RunOn(parts_.removals, RpcMethod::kDelete, context, &NodeCalls::Delete, request, response);
}

Reactor* CacheNodeService::PinBlocks(Context* context, const v1::PinBlocksRequest* request,
                                     v1::PinBlocksResponse* response) {
  return RunHere(RpcMethod::kPinBlocks, context, &NodeCalls::PinBlocks, *request, response);
}

Reactor* CacheNodeService::PullBlocks(Context* context, const v1::PullBlocksRequest* request,
                                      v1::PullBlocksResponse* response) {
  RpcMetrics::Call call = parts_.metrics->Begin(RpcMethod::kPullBlocks);
  const absl::StatusOr<Caller> caller = Resolve(*context, RpcMethod::kPullBlocks);
  if (!caller.ok()) return Finish(context, std::move(call), caller.status());
  if (parts_.facts->draining()) {
    return Finish(context, std::move(call),
                  absl::UnavailableError("the node is draining; use another one"));
  }
  absl::StatusOr<PullCalls::Pending> pull = parts_.pulls->Begin(*caller, *request);
  if (!pull.ok()) return Finish(context, std::move(call), pull.status());
  const absl::Duration wait = pull->wait();
  return WaitingReply::Start(
      parts_.waiting, parts_.waiter, parts_.clock->SteadyNow() + wait, std::move(call),
      [pulls = parts_.pulls, pull = *std::move(pull), waits = wait > absl::ZeroDuration(),
       response](bool last) -> std::optional<absl::Status> {
        if (!pulls->TryAnswer(pull, last || !waits, response)) return std::nullopt;
        return absl::OkStatus();
      });
}

Reactor* CacheNodeService::DescribeBlocks(Context* context,
                                          const v1::DescribeBlocksRequest* request,
                                          v1::DescribeBlocksResponse* response) {
  RpcMetrics::Call call = parts_.metrics->Begin(RpcMethod::kDescribeBlocks);
  const absl::StatusOr<Caller> caller = Resolve(*context, RpcMethod::kDescribeBlocks);
  return Finish(
      context, std::move(call),
      caller.ok() ? parts_.pulls->DescribeBlocks(*caller, *request, response) : caller.status());
}

Reactor* CacheNodeService::OpenLocal(Context* context, const v1::OpenLocalRequest* request,
                                     v1::OpenLocalResponse* response) {
  return RunHere(RpcMethod::kOpenLocal, context, &NodeCalls::OpenLocal, *request, response);
}

grpc::ServerBidiReactor<v1::WatchBlocksRequest, v1::WatchBlocksResponse>*
CacheNodeService::WatchBlocks(Context* context) {
  RpcMetrics::Call call = parts_.metrics->Begin(RpcMethod::kWatchBlocks);
  const absl::StatusOr<Caller> caller = Resolve(*context, RpcMethod::kWatchBlocks);
  absl::Status status = caller.status();
  if (status.ok() && parts_.facts->draining()) {
    status = absl::UnavailableError("the node is draining; watch another one");
  }
  if (!status.ok()) {
    return new Refusal<grpc::ServerBidiReactor<v1::WatchBlocksRequest, v1::WatchBlocksResponse>>(
        status, std::move(call));
  }
  const auto check = [this, context, caller = *caller]() -> absl::Status {
    const absl::StatusOr<Caller> now = Resolve(*context, RpcMethod::kWatchBlocks);
    if (!now.ok() || *now == caller) return now.status();
    return absl::UnavailableError("what this caller may see has changed; watch again");
  };
  return FeedStream::Start(parts_.feed, {*caller, check}, context, std::move(call));
}

Reactor* CacheNodeService::ExplainPrompt(Context* context, const v1::ExplainPromptRequest* request,
                                          v1::ExplainPromptResponse* response) {
  return RunOn(parts_.executor, RpcMethod::kExplainPrompt, context, &NodeCalls::ExplainPrompt,
               request, response);
}

Reactor* CacheNodeService::Describe(Context* context, const v1::DescribeRequest* request,
                                    v1::DescribeResponse* response) {
  return RunHere(RpcMethod::kDescribe, context, &NodeCalls::Describe, *request, response);
}

}  // namespace cairn::node
