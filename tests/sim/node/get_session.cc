#include "tests/sim/node/get_session.h"

#include <utility>

#include "cache_node/service/get_plan.h"
#include "common/base/check.h"
#include "common/rpc/id_conversion.h"
#include "tests/sim/network/frame_digest.h"

namespace cairn::sim {

void GetSession::OnPacket(StreamId stream, Packet packet) {
  v1::GetRequest request;
  CAIRN_CHECK(request.ParseFromString(packet.bytes));
  Caller caller = caller_;
  (void)parts_->mutation->BeforeCall(Method::kGet, &caller, &request);
  const absl::StatusOr<Fingerprint> fingerprint = FingerprintFromProto(request.fingerprint());
  if (!fingerprint.ok()) return End(stream, fingerprint.status());
  absl::StatusOr<node::GetPlan> plan =
      node::MakeGetPlan(request, parts_->store->FindPayloadMap(*fingerprint));
  if (!plan.ok()) return End(stream, plan.status());
  fingerprint_ = *fingerprint;
  keys_ = plan->keys;
  lease_ = request.lease();
  frames_ = std::make_unique<node::GetFrames>(parts_->store, parts_->get_pins, caller.tenant,
                                              *std::move(plan));
  SendNext(stream);
}

void GetSession::SendNext(StreamId stream) {
  if (frames_ == nullptr) return;
  absl::StatusOr<std::optional<grpc::ByteBuffer>> frame = frames_->Next();
  if (!frame.ok()) return End(stream, frame.status());
  if (!frame->has_value()) return End(stream, absl::OkStatus());
  Packet packet;
  packet.is_frame = true;
  packet.frame = parts_->mutation->OnFrame(**std::move(frame));
  packet.payload_digest = FrameDigest(packet.frame);
  parts_->world->witnesses.OnFrameSent(
      {parts_->life, caller_, fingerprint_, keys_, lease_, packet.frame});
  parts_->world->network.Send(stream, Network::Side::kServer, std::move(packet));
}

void GetSession::End(StreamId stream, const absl::Status& status) {
  frames_ = nullptr;
  parts_->world->witnesses.OnGetEnded({parts_->life, caller_, lease_, status});
  parts_->world->network.Finish(stream, status);
  parts_->over(stream);
}

void GetSession::OnClosed(StreamId stream, const absl::Status& /*status*/) {
  frames_ = nullptr;
  parts_->over(stream);
}

}  // namespace cairn::sim
