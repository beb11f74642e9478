#include "cache_node/service/decode_service.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cache_node/service/refusal.h"
#include "common/rpc/retry_status.h"
#include "common/rpc/status_mapping.h"

namespace cairn::node {
namespace {

using Reactor = grpc::ServerUnaryReactor;

constexpr absl::Duration kStreamRetryAfter = absl::Seconds(1);

Reactor* Finish(grpc::CallbackServerContext* context, RpcMetrics::Call call,
                const absl::Status& status) {
  Reactor* const reactor = context->DefaultReactor();
  call.End(status.code());
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

}  // namespace

absl::StatusOr<Caller> DecodeService::Resolve(const Context& context, DecodeMethod name) const {
  return parts_.callers->Resolve(
      context, absl::StrCat("Decode/", kDecodeMethodNames[static_cast<size_t>(name)]));
}

template <typename Request, typename Response>
Reactor* DecodeService::RunJob(DecodeMethod name, Context* context,
                               Method<Request, Response> method, const Request* request,
                               Response* response) const {
  RpcMetrics::Call call = parts_.metrics->Begin(name);
  absl::StatusOr<Caller> caller = Resolve(*context, name);
  if (!caller.ok()) return Finish(context, std::move(call), caller.status());
  Reactor* const reactor = context->DefaultReactor();
  // Shared with the job, which is left when it is refused. Messages live until Finish.
  auto counted = std::make_shared<RpcMetrics::Call>(std::move(call));
  DecodeEngine::Job job = [caller = *std::move(caller), method, request, response, reactor,
                           counted](SequenceTable& sequences) {
    const absl::Status status = method(sequences, caller, *request, response);
    counted->End(status.code());
    reactor->Finish(ToGrpcStatus(status));
  };
  const absl::Status refused = parts_.engine->Run(job);
  if (!refused.ok()) {
    counted->End(refused.code());
    reactor->Finish(ToGrpcStatus(WithDecodeRetry(refused)));
  }
  return reactor;
}

Reactor* DecodeService::Attend(Context* context, const v1::AttendRequest* request,
                               v1::AttendResponse* response) {
  RpcMetrics::Call call = parts_.metrics->Begin(DecodeMethod::kAttend);
  const absl::StatusOr<Caller> caller = Resolve(*context, DecodeMethod::kAttend);
  if (!caller.ok()) return Finish(context, std::move(call), caller.status());
  absl::Status admitted = parts_.calls->CheckServes();
  if (admitted.ok()) admitted = parts_.rates->Admit(caller->tenant);
  if (!admitted.ok()) return Finish(context, std::move(call), admitted);
  const absl::StatusOr<DecodeNamespace> name_space =
      FindDecodeNamespace(*parts_.store, caller->tenant, request->fingerprint());
  if (!name_space.ok()) return Finish(context, std::move(call), name_space.status());
  return DecodeAttend::Start(parts_.attend, *caller, *name_space->map, *request, response,
                             std::move(call));
}

absl::Status DecodeService::CheckStream(const absl::StatusOr<Caller>& caller) const {
  if (!caller.ok()) return caller.status();
  if (absl::Status status = parts_.calls->CheckServes(); !status.ok()) return status;
  if (parts_.facts->draining()) {
    return absl::UnavailableError("the node is draining; use another one");
  }
  return parts_.rates->Admit(caller->tenant);
}

grpc::ServerBidiReactor<v1::DecodeRequest, v1::DecodeResponse>* DecodeService::DecodeStream(
    Context* context) {
  RpcMetrics::Call call = parts_.metrics->Begin(DecodeMethod::kDecodeStream);
  auto rights = std::make_unique<StreamRights>(parts_.callers, context, "Decode/DecodeStream");
  absl::Status status = CheckStream(rights->caller());
  if (status.ok()) {
    auto* const reactor =
        node::DecodeStream::Start(parts_.stream, context, std::move(rights), &call);
    if (reactor != nullptr) return reactor;
    status = WithRetryAfter(
        absl::ResourceExhaustedError(absl::StrCat("decode streams: ", parts_.stream.streams->max(),
                                                  " are open already (--decode-streams-max)")),
        kStreamRetryAfter);
  }
  return new Refusal<grpc::ServerBidiReactor<v1::DecodeRequest, v1::DecodeResponse>>(
      status, std::move(call));
}

Reactor* DecodeService::OpenSequence(Context* context, const v1::OpenSequenceRequest* request,
                                     v1::OpenSequenceResponse* response) {
  RpcMetrics::Call call = parts_.metrics->Begin(DecodeMethod::kOpenSequence);
  const absl::StatusOr<Caller> caller = Resolve(*context, DecodeMethod::kOpenSequence);
  if (!caller.ok()) return Finish(context, std::move(call), caller.status());
  absl::StatusOr<std::optional<DecodeCalls::Opening>> begun =
      parts_.calls->BeginOpen(*caller, *request, response);
  if (!begun.ok()) return Finish(context, std::move(call), begun.status());
  if (!begun->has_value()) return Finish(context, std::move(call), absl::OkStatus());
  if (!(*begun)->lookup.has_value()) {  // The lookup was counted.
    absl::Status admitted = parts_.rates->Admit((*begun)->opening.tenant);
    if (!admitted.ok()) {
      begun->reset();
      return Finish(context, std::move(call), admitted);
    }
  }
  return DecodeOpenReply::Start(parts_.open, **std::move(begun), !request->request_id().empty(),
                                response, std::move(call));
}

Reactor* DecodeService::ForkSequence(Context* context, const v1::ForkSequenceRequest* request,
                                     v1::ForkSequenceResponse* response) {
  RpcMetrics::Call call = parts_.metrics->Begin(DecodeMethod::kForkSequence);
  absl::StatusOr<Caller> caller = Resolve(*context, DecodeMethod::kForkSequence);
  if (!caller.ok()) return Finish(context, std::move(call), caller.status());
  if (absl::Status admitted = parts_.rates->Admit(caller->tenant); !admitted.ok()) {
    return Finish(context, std::move(call), admitted);
  }
  absl::StatusOr<std::optional<RequestMemory::Turn>> turn =
      parts_.calls->BeginFork(*caller, *request, response);
  if (!turn.ok()) return Finish(context, std::move(call), turn.status());
  if (!turn->has_value()) return Finish(context, std::move(call), absl::OkStatus());
  Reactor* const reactor = context->DefaultReactor();
  auto counted = std::make_shared<RpcMetrics::Call>(std::move(call));
  DecodeEngine::Job job = [caller = *std::move(caller), request, response, reactor, counted,
                           turn = **std::move(turn)](SequenceTable& sequences) mutable {
    const absl::Status status =
        DecodeCalls::FinishFork(sequences, caller, *request, std::move(turn), response);
    counted->End(status.code());
    reactor->Finish(ToGrpcStatus(status));
  };
  const absl::Status refused = parts_.engine->Run(job);
  if (!refused.ok()) {
    job = nullptr;  // The request is forgotten before the caller hears of it.
    counted->End(refused.code());
    reactor->Finish(ToGrpcStatus(WithDecodeRetry(refused)));
  }
  return reactor;
}

Reactor* DecodeService::TruncateSequence(Context* context,
                                         const v1::TruncateSequenceRequest* request,
                                         v1::TruncateSequenceResponse* response) {
  return RunJob(DecodeMethod::kTruncateSequence, context, &DecodeCalls::Truncate, request,
                response);
}

Reactor* DecodeService::ReleaseWindow(Context* context, const v1::ReleaseWindowRequest* request,
                                      v1::ReleaseWindowResponse* response) {
  return RunJob(DecodeMethod::kReleaseWindow, context, &DecodeCalls::ReleaseWindow, request,
                response);
}

Reactor* DecodeService::GetSequence(Context* context, const v1::GetSequenceRequest* request,
                                    v1::GetSequenceResponse* response) {
  return RunJob(DecodeMethod::kGetSequence, context, &DecodeCalls::Get, request, response);
}

Reactor* DecodeService::CloseSequences(Context* context, const v1::CloseSequencesRequest* request,
                                       v1::CloseSequencesResponse* response) {
  return RunJob(DecodeMethod::kCloseSequences, context, &DecodeCalls::Close, request, response);
}

}  // namespace cairn::node
