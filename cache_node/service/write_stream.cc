#include "cache_node/service/write_stream.h"

#include <utility>

#include "common/base/check.h"
#include "common/rpc/status_mapping.h"
#include "common/wire/frame_decoder.h"
#include "common/wire/limits.h"
#include "common/wire/message_codec.h"

namespace cairn::node {

grpc::ServerGenericBidiReactor* WriteStream::Start(const Parts& parts,
                                                   std::unique_ptr<StreamRights> rights,
                                                   uint64_t writer, RpcMetrics::Call call) {
  std::shared_ptr<WriteStream> stream(
      new WriteStream(parts, std::move(rights), writer, std::move(call)));
  stream->self_ = stream;
  stream->AskForNext();
  return stream.get();  // gRPC calls OnDone after it got this, not before.
}

WriteStream::WriteStream(const Parts& parts, std::unique_ptr<StreamRights> rights, uint64_t writer,
                         RpcMetrics::Call call)
    : parts_(parts),
      rights_(std::move(rights)),
      writer_(parts.store, rights_->caller()->tenant, writer),
      call_(std::move(call)) {}

void WriteStream::AskForNext() {
  const std::shared_ptr<WriteStream> self = shared_from_this();
  // It ended when it was told that it stalled while its answer was on its way.
  if (!gate_.Enter()) return;
  parts_.in_flight->Acquire(self, kMessageBytesMax);
  const std::optional<absl::Status> ended = gate_.Leave();
  if (ended.has_value()) parts_.in_flight->Leave(this);
  FinishIf(ended);
  // A client that went while the last message was handled has nobody else to take it out.
  if (cancelled_.load()) OnCancel();
  // Nor has one whose rights ended before it was in the queue.
  OnRightsChanged();
}

void WriteStream::OnAdmitted() {
  if (!gate_.Enter()) {
    parts_.in_flight->Release(this);
    return;
  }
  StartRead(&request_);
  FinishIf(gate_.Leave());
}

void WriteStream::OnRefused(absl::Status status) { End(std::move(status)); }

void WriteStream::OnStalled(absl::Status status) {
  End(std::move(status));
  // Its message may have landed in the meantime, so that it waits for the next.
  parts_.in_flight->Leave(this);
}

void WriteStream::OnRightsChanged() {
  // Inside the gate nobody finishes, so the context that the rights look at is there.
  if (!gate_.Enter()) return;
  absl::Status rights = rights_->Check();
  FinishIf(gate_.Leave());
  if (!rights.ok()) OnStalled(std::move(rights));
}

void WriteStream::OnReadDone(bool ok) {
  // Without a message the client has sent all, or is gone.
  absl::Status status = ok                  ? Land()
                        : cancelled_.load() ? absl::CancelledError("the client is gone")
                                            : absl::OkStatus();
  request_.Clear();
  parts_.in_flight->Release(this);
  if (!ok || !status.ok()) {
    End(std::move(status));
    return;
  }
  if (!gate_.Enter()) return;
  StartWrite(&response_);
  FinishIf(gate_.Leave());
}

absl::Status WriteStream::Land() {
  if (absl::Status rights = rights_->Check(); !rights.ok()) return rights;
  const absl::StatusOr<ReceivedFrame> frame = DecodeFrame(FrameKind::kWriteRequest, request_);
  if (!frame.ok()) return frame.status();
  const uint64_t landed_before = writer_.bytes_landed();
  const absl::StatusOr<v1::WriteResponse> response = writer_.Land(*frame);
  if (!response.ok()) return response.status();
  parts_.bytes_landed.Increment(static_cast<double>(writer_.bytes_landed() - landed_before));
  response_ = EncodeMessage(*response);
  return absl::OkStatus();
}

void WriteStream::OnWriteDone(bool ok) {
  if (ok) {
    AskForNext();
  } else {
    End(absl::CancelledError("the client is gone"));
  }
}

void WriteStream::OnCancel() {
  cancelled_.store(true);
  // When it does not wait, a read or write is under way, which fails by itself.
  if (parts_.in_flight->Leave(this)) End(absl::CancelledError("the client is gone"));
}

void WriteStream::OnDone() {
  writer_.End();
  const std::shared_ptr<WriteStream> self = std::move(self_);
}

void WriteStream::End(absl::Status status) { FinishIf(gate_.End(std::move(status))); }

void WriteStream::FinishIf(std::optional<absl::Status> status) {
  if (!status.has_value()) return;
  call_.End(status->code());
  Finish(ToGrpcStatus(*status));
}

}  // namespace cairn::node
