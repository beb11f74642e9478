// WriteStream: one Write call, whose payload is read off the wire only after it was admitted.
//
// Messages are read one after the other, each after InFlightBytes admitted a message's worth, and
// land in the order in which they came; each is answered before the next one lands. While one lands
// the next may be on its way already (read ahead), where the budget has room that nobody waits for:
// so a stream holds one message, or two. Until a message is admitted nothing but the transport's
// small window of the stream is in memory. Once its caller's rights end it takes no further message
// and ends with why, also when none comes. Copies and hashes at most 1 MiB at a time on gRPC's
// thread.
//
// Owned by gRPC until OnDone and by whoever is calling it at that moment (InFlightBytes): hence
// shared. Its borrowed parts must outlive the server.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"
#include "absl/synchronization/mutex.h"
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
  // A message's place, which holds a message's worth of the budget from before its read until it
  // landed. The first is the stream itself in InFlightBytes; the second never waits there.
  using Place = size_t;
  static constexpr size_t kPlaces = 2;

  // The second place in InFlightBytes.
  class ReadAhead final : public InFlightBytes::Stream {
   public:
    explicit ReadAhead(WriteStream* stream) : stream_(stream) {}
    void OnAdmitted() override;
    void OnRefused(absl::Status status) override;
    void OnStalled(absl::Status status) override { stream_->OnStalled(std::move(status)); }
    void OnRightsChanged() override { stream_->OnRightsChanged(); }

   private:
    WriteStream* const stream_;
  };

  WriteStream(const Parts& parts, std::unique_ptr<StreamRights> rights, uint64_t writer,
              RpcMetrics::Call call);

  const InFlightBytes::Stream* HolderOf(Place place) const;
  // Waits for its turn. No read is under way, and the first place is free.
  void AskForNext() ABSL_LOCKS_EXCLUDED(mutex_);
  // Where there is a free place and room for it: without waiting.
  void TryReadAhead() ABSL_LOCKS_EXCLUDED(mutex_);
  void ReadInto(Place place);
  // Lands the first message that came and writes what became of it, unless another thread does.
  void LandNext() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Land(const grpc::ByteBuffer& message);
  // Writes what became of the message that landed, and ends the call after the last one.
  void Answer() ABSL_LOCKS_EXCLUDED(mutex_);
  // All that came has landed and was answered: no more comes, or nobody has asked for it.
  bool IsOver() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsIdle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Forgets what came and will not land.
  void DropReceived() ABSL_LOCKS_EXCLUDED(mutex_);
  void End(absl::Status status);
  void FinishIf(std::optional<absl::Status> status);

  const Parts parts_;
  const std::unique_ptr<StreamRights> rights_;
  FrameWriter writer_;  // Of the thread that lands.
  RpcMetrics::Call call_;
  FinishGate gate_;
  ReadAhead read_ahead_{this};
  std::atomic<bool> cancelled_{false};
  // Each of the thread that reads into it, or lands it.
  std::array<grpc::ByteBuffer, kPlaces> requests_;
  grpc::ByteBuffer response_;

  absl::Mutex mutex_;
  // The place that a read goes to, from its request for admission to its end.
  std::optional<Place> reading_ ABSL_GUARDED_BY(mutex_);
  // Messages that came and do not land yet, in order.
  absl::InlinedVector<Place, kPlaces> received_ ABSL_GUARDED_BY(mutex_);
  // The message that lands, or whose answer is on its way; its place is free by then.
  bool landing_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Place> landing_place_ ABSL_GUARDED_BY(mutex_);
  bool no_more_ ABSL_GUARDED_BY(mutex_) = false;  // The client has sent all.
  bool dropped_ ABSL_GUARDED_BY(mutex_) = false;  // What comes now does not land.

  std::shared_ptr<WriteStream> self_;  // Until OnDone.
};

}  // namespace cairn::node
