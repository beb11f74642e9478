#include "cache_node/service/get_stream.h"

#include <utility>

#include "common/rpc/status_mapping.h"

namespace cairn::node {

grpc::ServerWriteReactor<grpc::ByteBuffer>* GetStream::Start(const Parts& parts,
                                                             grpc::CallbackServerContext* context,
                                                             std::unique_ptr<StreamRights> rights,
                                                             std::unique_ptr<GetFrames> frames,
                                                             RpcMetrics::Call call) {
  const std::shared_ptr<GetStream> stream(
      new GetStream(parts, context, std::move(rights), std::move(frames), std::move(call)));
  parts.slots->Enter(stream);
  stream->SendNext();
  return stream.get();  // gRPC calls OnDone after it got this, not before.
}

GetStream::GetStream(const Parts& parts, grpc::CallbackServerContext* context,
                     std::unique_ptr<StreamRights> rights, std::unique_ptr<GetFrames> frames,
                     RpcMetrics::Call call)
    : parts_(parts),
      context_(context),
      rights_(std::move(rights)),
      frames_(std::move(frames)),
      call_(std::move(call)) {}

void GetStream::OnTick() {
  // Inside the gate nobody finishes, so the context is there.
  if (!gate_.Enter()) return;
  if (TakeStalled(rights_->Check().ok() ? parts_.stall_max : parts_.rights_stall_max)) {
    parts_.stalled.Increment();
    context_->TryCancel();  // A status would wait behind the frame that nobody reads.
  }
  FinishIf(gate_.Leave());
}

void GetStream::SendNext() {
  if (absl::Status rights = rights_->Check(); !rights.ok()) return End(std::move(rights));
  const uint64_t sent_before = frames_->payload_bytes();
  absl::StatusOr<std::optional<grpc::ByteBuffer>> frame = frames_->Next();
  if (!frame.ok()) return End(frame.status());
  if (!frame->has_value()) return End(absl::OkStatus());
  parts_.bytes_sent.Increment(static_cast<double>(frames_->payload_bytes() - sent_before));
  frame_ = **std::move(frame);
  {
    absl::MutexLock lock(&mutex_);
    sending_since_ = parts_.clock->SteadyNow();
  }
  // Nobody else ends the stream, so nothing has been finished yet.
  StartWrite(&frame_);
}

void GetStream::OnWriteDone(bool ok) {
  frame_.Clear();
  if (ok) return SendNext();
  End(absl::CancelledError("the client is gone, or has read nothing for too long"));
}

bool GetStream::TakeStalled(absl::Duration stall_max) {
  absl::MutexLock lock(&mutex_);
  if (parts_.clock->SteadyNow() - sending_since_ <= stall_max) return false;
  sending_since_ = absl::InfiniteFuture();
  return true;
}

void GetStream::End(absl::Status status) {
  frames_ = nullptr;
  FinishIf(gate_.End(std::move(status)));
}

void GetStream::FinishIf(std::optional<absl::Status> status) {
  if (!status.has_value()) return;
  call_.End(status->code());
  Finish(ToGrpcStatus(*status));
}

void GetStream::OnDone() { parts_.slots->Give(this); }

}  // namespace cairn::node
