#include "cache_node/service/get_stream.h"

#include <utility>

#include "common/rpc/status_mapping.h"

namespace cairn::node {

grpc::ServerWriteReactor<grpc::ByteBuffer>* GetStream::Start(std::unique_ptr<GetFrames> frames,
                                                             GetSlots* slots, Counter bytes_sent,
                                                             RpcMetrics::Call call) {
  auto* const stream = new GetStream(std::move(frames), slots, bytes_sent, std::move(call));
  stream->SendNext();
  return stream;
}

GetStream::GetStream(std::unique_ptr<GetFrames> frames, GetSlots* slots, Counter bytes_sent,
                     RpcMetrics::Call call)
    : frames_(std::move(frames)), slots_(slots), bytes_sent_(bytes_sent), call_(std::move(call)) {}

void GetStream::SendNext() {
  const uint64_t sent_before = frames_->payload_bytes();
  absl::StatusOr<std::optional<grpc::ByteBuffer>> frame = frames_->Next();
  if (!frame.ok()) return End(frame.status());
  if (!frame->has_value()) return End(absl::OkStatus());
  bytes_sent_.Increment(static_cast<double>(frames_->payload_bytes() - sent_before));
  frame_ = **std::move(frame);
  StartWrite(&frame_);
}

void GetStream::OnWriteDone(bool ok) {
  frame_.Clear();
  if (ok) return SendNext();
  End(absl::CancelledError("the client is gone"));
}

void GetStream::End(const absl::Status& status) {
  frames_ = nullptr;
  call_.End(status.code());
  Finish(ToGrpcStatus(status));
}

void GetStream::OnDone() {
  slots_->Give();
  delete this;
}

}  // namespace cairn::node
