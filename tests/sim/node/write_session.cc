#include "tests/sim/node/write_session.h"

#include <utility>

#include "common/base/check.h"
#include "common/wire/frame_decoder.h"
#include "common/wire/limits.h"

namespace cairn::sim {

WriteSession::WriteSession(const NodeParts* parts, const Caller& caller, StreamId stream,
                           uint64_t writer)
    : parts_(parts), stream_(stream), writer_(parts->store, caller.tenant, writer) {}

void WriteSession::AskForNext() {
  admission_ = Admission::kWaits;
  parts_->in_flight->Acquire(shared_from_this(), kMessageBytesMax);
}

void WriteSession::OnAdmitted() {
  if (over_) return parts_->in_flight->Release(this);
  admission_ = Admission::kHolds;
  PumpSoon();
}

void WriteSession::OnRefused(absl::Status status) {
  admission_ = Admission::kNone;
  End(status);
}

void WriteSession::OnStalled(absl::Status status) { End(status); }

void WriteSession::OnPacket(StreamId /*stream*/, Packet packet) {
  frames_.push_back(std::move(packet.frame));
  PumpSoon();
}

void WriteSession::OnPeerDone(StreamId /*stream*/) {
  client_done_ = true;
  PumpSoon();
}

void WriteSession::OnClosed(StreamId /*stream*/, const absl::Status& status) { End(status); }

void WriteSession::PumpSoon() {
  parts_->world->scheduler.After(absl::ZeroDuration(), parts_->host, [self = weak_from_this()] {
    if (const auto session = self.lock()) session->Pump();
  });
}

void WriteSession::Pump() {
  if (over_) return;
  if (frames_.empty()) {
    if (client_done_) End(absl::OkStatus());
    return;
  }
  if (admission_ != Admission::kHolds) return;
  const grpc::ByteBuffer message = std::move(frames_.front());
  frames_.pop_front();
  absl::Status status;
  v1::WriteResponse response;
  const absl::StatusOr<ReceivedFrame> frame = DecodeFrame(FrameKind::kWriteRequest, message);
  if (frame.ok()) {
    absl::StatusOr<v1::WriteResponse> landed = writer_.Land(*frame);
    status = landed.status();
    if (landed.ok()) response = *std::move(landed);
  } else {
    status = frame.status();
  }
  LetGo();
  if (!status.ok()) return End(status);
  Packet packet;
  packet.bytes = response.SerializeAsString();
  parts_->world->network.Send(stream_, Network::Side::kServer, std::move(packet));
  AskForNext();
}

void WriteSession::LetGo() {
  const Admission had = std::exchange(admission_, Admission::kNone);
  if (had == Admission::kHolds) parts_->in_flight->Release(this);
  if (had == Admission::kWaits) CAIRN_CHECK(parts_->in_flight->Leave(this));
}

void WriteSession::End(const absl::Status& status) {
  if (std::exchange(over_, true)) return;
  writer_.End();
  LetGo();
  parts_->world->network.Finish(stream_, status);
  parts_->over(stream_);
}

}  // namespace cairn::sim
