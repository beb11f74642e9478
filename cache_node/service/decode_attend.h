// DecodeAttend: one Attend call: a step of leased blocks whose results go into the response.
//
// Owns itself until OnDone; gRPC keeps its messages until Finish, which is after the step was done.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <memory>

#include "cache_node/decode/engine/decode_engine.h"
#include "cache_node/service/decode_bytes.h"
#include "cache_node/service/rpc_metrics.h"
#include "cairn/v1/decode.pb.h"
#include "common/rpc/caller_identity.h"

namespace cairn::node {

class DecodeAttend final : public grpc::ServerUnaryReactor {
 public:
  struct Parts {
    DecodeEngine* engine = nullptr;
    DecodeBytes* bytes = nullptr;
  };

  // The reactor to return from the handler.
  static grpc::ServerUnaryReactor* Start(const Parts& parts, const Caller& caller,
                                         const PayloadMap& map, const v1::AttendRequest& request,
                                         v1::AttendResponse* response, RpcMetrics::Call call);

  void OnCancel() override { step_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  class Step final : public DecodeStep {
   public:
    explicit Step(DecodeAttend* attend) : attend_(attend) {}
    void OnDone() override { attend_->OnStepDone(); }

   private:
    DecodeAttend* const attend_;
  };

  DecodeAttend(const Parts& parts, v1::AttendResponse* response, RpcMetrics::Call call)
      : parts_(parts), response_(response), call_(std::move(call)), step_(this) {}

  absl::Status Begin(const Caller& caller, const PayloadMap& map, const v1::AttendRequest& request);
  void OnStepDone();
  void End(const absl::Status& status);

  const Parts parts_;
  v1::AttendResponse* const response_;
  RpcMetrics::Call call_;
  AttendShape shape_;
  Step step_;
  uint64_t taken_bytes_ = 0;
};

}  // namespace cairn::node
