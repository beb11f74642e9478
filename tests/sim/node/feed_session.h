// FeedSession: one WatchBlocks at a simulated node: hello, then what the real store has for the
// watcher, as fast as it leaves.
#pragma once

#include "tests/sim/node/node_session.h"

namespace cairn::sim {

class FeedSession final : public NodeSession {
 public:
  FeedSession(const NodeParts* parts, StreamId stream) : parts_(parts), stream_(stream) {}
  ~FeedSession() override;

  void Begin();

  void OnPacket(StreamId stream, Packet packet) override;
  void OnSent(StreamId stream) override;
  void OnClosed(StreamId stream, const absl::Status& status) override;
  void OnHeartbeat() override;
  void OnFeed(node::WatcherId watcher) override;
  bool FeedIsIdle() const override { return idle_; }

 private:
  void Send(const v1::WatchBlocksResponse& message);
  void SendNext();

  const NodeParts* const parts_;
  const StreamId stream_;
  node::WatcherId watcher_ = 0;
  bool sending_ = false;
  bool idle_ = false;
};

}  // namespace cairn::sim
