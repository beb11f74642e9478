// WriteStream: one Write call, whose payload is read off the wire only after it was admitted.
//
// One message at a time: ask InFlightBytes for a message's worth, read it, land it in the store,
// give the bytes back, answer, ask again. Until it is admitted nothing but the transport's small
// window of the stream is in memory. Once its caller's rights end it takes no further message and
// ends with why, also when none comes. Copies and hashes at most 1 MiB at a time on gRPC's thread.
//
// Owned by gRPC until OnDone and by whoever is calling it at that moment (InFlightBytes): hence
// shared. Its borrowed parts must outlive the server.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <atomic>
#include <memory>
#include <string>

#include "cache_node/service/finish_gate.h"
#include "cache_node/service/frame_writer.h"
#include "cache_node/service/in_flight_bytes.h"
#include "cache_node/service/rpc_metrics.h"
#include "cache_node/service/stream_rights.h"
#include "common/metrics/metric_handles.h"

namespace cairn::node {

class WriteStream final : public grpc::ServerGenericBidiReactor,
                          public InFlightBytes::Stream,
                          public std::enable_shared_from_this<WriteStream> {
 public:
  struct Parts {
    BlockStore* store = nullptr;
    InFlightBytes* in_flight = nullptr;
    Counter bytes_landed;
  };

  // The reactor to return; it owns itself until OnDone. `writer` is not used twice.
  static grpc::ServerGenericBidiReactor* Start(const Parts& parts,
                                               std::unique_ptr<StreamRights> rights,
                                               uint64_t writer, RpcMetrics::Call call);

  void OnAdmitted() override;
  void OnRefused(absl::Status status) override;
  void OnStalled(absl::Status status) override;
  void OnRightsChanged() override;

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  WriteStream(const Parts& parts, std::unique_ptr<StreamRights> rights, uint64_t writer,
              RpcMetrics::Call call);

  void AskForNext();
  // Lands the message in `request_` and writes what came of it.
  absl::Status Land();
  void Answer();
  void End(absl::Status status);
  void FinishIf(std::optional<absl::Status> status);

  const Parts parts_;
  const std::unique_ptr<StreamRights> rights_;
  FrameWriter writer_;
  RpcMetrics::Call call_;
  FinishGate gate_;
  std::atomic<bool> cancelled_{false};
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;
  std::shared_ptr<WriteStream> self_;  // Until OnDone.
};

}  // namespace cairn::node
