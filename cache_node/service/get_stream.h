// GetStream: one Get call: GetFrames sent one at a time, so that a slow reader holds one frame's
// pins.
//
// Owns itself until OnDone. Operations come one after the other, so it needs no lock. A call that
// was cancelled or ran into its deadline fails its write, which lets go of everything at once.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <memory>
#include <optional>

#include "cache_node/service/get_frames.h"
#include "cache_node/service/get_slots.h"
#include "cache_node/service/rpc_metrics.h"
#include "common/metrics/metric_handles.h"

namespace cairn::node {

class GetStream final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  // The reactor to return. `slots` has one taken for it.
  static grpc::ServerWriteReactor<grpc::ByteBuffer>* Start(std::unique_ptr<GetFrames> frames,
                                                           GetSlots* slots, Counter bytes_sent,
                                                           RpcMetrics::Call call);

  void OnWriteDone(bool ok) override;
  void OnDone() override;

 private:
  GetStream(std::unique_ptr<GetFrames> frames, GetSlots* slots, Counter bytes_sent,
            RpcMetrics::Call call);

  void SendNext();
  void End(const absl::Status& status);

  std::unique_ptr<GetFrames> frames_;
  GetSlots* const slots_;
  const Counter bytes_sent_;
  RpcMetrics::Call call_;
  grpc::ByteBuffer frame_;
};

}  // namespace cairn::node
