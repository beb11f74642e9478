// GetStream: one Get call: GetFrames sent one at a time, so that a slow reader holds one frame's
// pins.
//
// Operations come one after the other. A call that was cancelled or ran into its deadline fails its
// write, which lets go of everything at once. One whose frame does not leave for `stall_max` is
// cancelled, so that its reader cannot keep its slot and pins for ever. One whose caller's rights
// end gets no further frame: it ends with why, or is cancelled when its last frame does not leave.
//
// Owned by gRPC until OnDone, and by whoever calls it at that moment (GetSlots): hence shared. Its
// borrowed parts must outlive the server.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "cache_node/service/finish_gate.h"
#include "cache_node/service/get_frames.h"
#include "cache_node/service/get_slots.h"
#include "cache_node/service/rpc_metrics.h"
#include "cache_node/service/stream_rights.h"
#include "common/base/clock.h"
#include "common/metrics/metric_handles.h"

namespace cairn::node {

class GetStream final : public grpc::ServerWriteReactor<grpc::ByteBuffer>,
                        public GetSlots::Stream,
                        public std::enable_shared_from_this<GetStream> {
 public:
  struct Parts {
    GetSlots* slots = nullptr;
    const Clock* clock = nullptr;
    absl::Duration stall_max = absl::Seconds(30);
    // As stall_max, once the caller may not have the rest.
    absl::Duration rights_stall_max = absl::Seconds(1);
    Counter bytes_sent;
    Counter stalled;
  };

  // The reactor to return; it owns itself until OnDone. `parts.slots` has one taken for it.
  static grpc::ServerWriteReactor<grpc::ByteBuffer>* Start(const Parts& parts,
                                                           grpc::CallbackServerContext* context,
                                                           std::unique_ptr<StreamRights> rights,
                                                           std::unique_ptr<GetFrames> frames,
                                                           RpcMetrics::Call call);

  void OnTick() override ABSL_LOCKS_EXCLUDED(mutex_);

  void OnWriteDone(bool ok) override;
  void OnDone() override;

 private:
  GetStream(const Parts& parts, grpc::CallbackServerContext* context,
            std::unique_ptr<StreamRights> rights, std::unique_ptr<GetFrames> frames,
            RpcMetrics::Call call);

  void SendNext() ABSL_LOCKS_EXCLUDED(mutex_);
  // True once, when the frame on its way has been so for too long.
  bool TakeStalled(absl::Duration stall_max) ABSL_LOCKS_EXCLUDED(mutex_);
  void End(absl::Status status);
  void FinishIf(std::optional<absl::Status> status);

  const Parts parts_;
  grpc::CallbackServerContext* const context_;  // Valid until OnDone.
  const std::unique_ptr<StreamRights> rights_;
  std::unique_ptr<GetFrames> frames_;
  RpcMetrics::Call call_;
  FinishGate gate_;
  grpc::ByteBuffer frame_;

  absl::Mutex mutex_;
  absl::Time sending_since_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
};

}  // namespace cairn::node
