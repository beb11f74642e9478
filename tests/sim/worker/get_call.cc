#include "tests/sim/worker/get_call.h"

#include <string>
#include <utility>

#include "cairn/v1/cache_node.pb.h"
#include "common/base/check.h"
#include "common/rpc/id_conversion.h"
#include "common/wire/frame_decoder.h"
#include "tests/sim/network/frame_digest.h"

namespace cairn::sim {
namespace {

SegmentSelection Select(const GetCall::What& what) {
  absl::StatusOr<SegmentSelection> selection =
      SegmentSelection::Make(what.name_space->payload_map(), what.parts);
  CAIRN_CHECK_OK(selection.status());
  return *std::move(selection);
}

}  // namespace

GetCall::GetCall(const ClientSide& side, HostId node, What what, absl::Duration timeout, Done done)
    : side_(side),
      node_(node),
      what_(std::move(what)),
      deadline_(side.world->scheduler.Now() + timeout),
      done_(std::move(done)),
      selection_(Select(what_)),
      place_(&what_.name_space->payload_map(), what_.place),
      received_(&selection_, what_.keys, place_) {
  CAIRN_CHECK_OK(received_.CheckPlaces());
  Attempt();
}

GetCall::~GetCall() {
  if (stream_ != 0) side_.world->network.Drop(stream_);
}

void GetCall::Attempt() {
  ++attempts_;
  std::vector<BlockKey> keys;
  for (const size_t block : received_.BeginAttempt()) keys.push_back(what_.keys[block]);
  v1::GetRequest request;
  request.set_fingerprint(std::string(what_.name_space->fingerprint().view()));
  if (what_.lease) request.set_lease(std::string(what_.lease->view()));
  request.set_keys(KeysToProto(keys));
  for (const PartLayers& part : what_.parts) {
    v1::PartSelector* selector = request.add_parts();
    selector->set_group(part.group);
    selector->set_slice(part.slice);
    selector->set_first_layer(part.first_layer);
    selector->set_layers(part.layers);
  }
  stream_ = side_.world->network.Open(side_.host, node_, Method::kGet, side_.caller, this,
                                      deadline_ - side_.world->scheduler.Now());
  Packet packet;
  packet.bytes = request.SerializeAsString();
  side_.world->network.Send(stream_, Network::Side::kClient, std::move(packet));
}

void GetCall::OnPacket(StreamId stream, Packet packet) {
  side_.world->witnesses.OnFrameArrived(what_.keys, packet.payload_digest,
                                        FrameDigest(packet.frame));
  const absl::StatusOr<ReceivedFrame> frame = DecodeFrame(FrameKind::kGetResponse, packet.frame);
  absl::Status status = frame.status();
  if (frame.ok()) status = received_.Accept(frame->header(), frame->payload());
  if (status.ok()) return;
  side_.world->network.Drop(stream);
  End(std::move(status));
}

void GetCall::OnClosed(StreamId /*stream*/, const absl::Status& status) {
  stream_ = 0;
  // What is whole already is not asked for again.
  if (absl::IsUnavailable(status) && attempts_ < kAttemptsMax &&
      side_.world->scheduler.Now() < deadline_ && !received_.BeginAttempt().empty()) {
    return Attempt();
  }
  End(status);
}

// The last call of all: `done` may destroy this.
void GetCall::End(absl::Status status) {
  stream_ = 0;
  const GetResult result = received_.Finish(std::move(status));
  const Done done = std::move(done_);
  done(result);
}

}  // namespace cairn::sim
