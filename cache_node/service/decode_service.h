// DecodeService: the gRPC face of served attention.
//
// Only shells: resolve the caller, find the thread, run, map the status, count and time. Attention
// and jobs run as the engine says (decode_engine.h); nothing here waits. Borrows its parts, which
// must outlive the server.
#pragma once

#include <grpcpp/grpcpp.h>

#include "cache_node/service/decode_attend.h"
#include "cache_node/service/decode_calls.h"
#include "cache_node/service/decode_open_reply.h"
#include "cache_node/service/decode_rpc_metrics.h"
#include "cache_node/service/decode_stream.h"
#include "cairn/v1/decode.grpc.pb.h"
#include "common/rpc/caller_resolver.h"

namespace cairn::node {

class DecodeService final : public v1::Decode::CallbackService {
 public:
  struct Parts {
    DecodeCalls* calls = nullptr;
    DecodeEngine* engine = nullptr;
    BlockStore* store = nullptr;
    const CallerResolver* callers = nullptr;
    TenantRates* rates = nullptr;  // Not null.
    const NodeFacts* facts = nullptr;
    DecodeRpcMetrics* metrics = nullptr;
    DecodeOpenReply::Parts open;
    DecodeAttend::Parts attend;
    DecodeStream::Parts stream;
  };

  explicit DecodeService(const Parts& parts) : parts_(parts) {}

  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;

  Reactor* Attend(Context* context, const v1::AttendRequest* request,
                  v1::AttendResponse* response) override;
  grpc::ServerBidiReactor<v1::DecodeRequest, v1::DecodeResponse>* DecodeStream(
      Context* context) override;
  Reactor* OpenSequence(Context* context, const v1::OpenSequenceRequest* request,
                        v1::OpenSequenceResponse* response) override;
  Reactor* ForkSequence(Context* context, const v1::ForkSequenceRequest* request,
                        v1::ForkSequenceResponse* response) override;
  Reactor* TruncateSequence(Context* context, const v1::TruncateSequenceRequest* request,
                            v1::TruncateSequenceResponse* response) override;
  Reactor* ReleaseWindow(Context* context, const v1::ReleaseWindowRequest* request,
                         v1::ReleaseWindowResponse* response) override;
  Reactor* GetSequence(Context* context, const v1::GetSequenceRequest* request,
                       v1::GetSequenceResponse* response) override;
  Reactor* CloseSequences(Context* context, const v1::CloseSequencesRequest* request,
                          v1::CloseSequencesResponse* response) override;

 private:
  // What a call does with the table.
  template <typename Request, typename Response>
  using Method = absl::Status (*)(SequenceTable& sequences, const Caller& caller,
                                  const Request& request, Response* response);

  absl::StatusOr<Caller> Resolve(const Context& context, DecodeMethod name) const;
  // As a job of the engine.
  template <typename Request, typename Response>
  Reactor* RunJob(DecodeMethod name, Context* context, Method<Request, Response> method,
                  const Request* request, Response* response) const;
  absl::Status CheckStream(const absl::StatusOr<Caller>& caller) const;

  const Parts parts_;
};

}  // namespace cairn::node
