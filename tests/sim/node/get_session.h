// GetSession: one Get at a simulated node: the real frames, one after the other as they leave.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache_node/service/get_frames.h"
#include "tests/sim/node/node_session.h"

namespace cairn::sim {

class GetSession final : public NodeSession {
 public:
  GetSession(const NodeParts* parts, const Caller& caller) : parts_(parts), caller_(caller) {}

  void OnPacket(StreamId stream, Packet packet) override;
  void OnSent(StreamId stream) override { SendNext(stream); }
  void OnClosed(StreamId stream, const absl::Status& status) override;

 private:
  void SendNext(StreamId stream);
  void End(StreamId stream, const absl::Status& status);

  const NodeParts* const parts_;
  const Caller caller_;
  Fingerprint fingerprint_;
  std::vector<BlockKey> keys_;
  std::string lease_;
  std::unique_ptr<node::GetFrames> frames_;
};

}  // namespace cairn::sim
