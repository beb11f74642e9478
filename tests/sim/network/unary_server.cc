#include "tests/sim/network/unary_server.h"

#include <utility>

namespace cairn::sim {

UnaryServer::UnaryServer(Network* network, Handle handle, Gone gone)
    : network_(network), handle_(std::move(handle)), gone_(std::move(gone)) {}

StreamEnd* UnaryServer::Accept(StreamId stream, Method method, const Caller& caller) {
  open_[stream] = {method, caller};
  return this;
}

void UnaryServer::OnPacket(StreamId stream, Packet packet) {
  const auto open = open_.find(stream);
  if (open == open_.end()) return;
  handle_({stream, open->second.method, open->second.caller, std::move(packet.bytes)});
}

void UnaryServer::Answer(StreamId stream, const absl::Status& status,
                         const google::protobuf::MessageLite& response) {
  if (open_.erase(stream) == 0) return;
  if (status.ok()) {
    Packet packet;
    packet.bytes = response.SerializeAsString();
    network_->Send(stream, Network::Side::kServer, std::move(packet));
  }
  network_->Finish(stream, status);
}

void UnaryServer::OnClosed(StreamId stream, const absl::Status& /*status*/) {
  open_.erase(stream);
  gone_(stream);
}

}  // namespace cairn::sim
