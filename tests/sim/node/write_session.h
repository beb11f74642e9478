// WriteSession: one Write at a simulated node: its frames wait for admission, land in the real
// store, and are answered one by one.
//
// Shared with the admission, which may call it when its stream is over.
#pragma once

#include <deque>
#include <memory>

#include "cache_node/service/frame_writer.h"
#include "tests/sim/node/node_session.h"

namespace cairn::sim {

class WriteSession final : public NodeSession,
                           public node::InFlightBytes::Stream,
                           public std::enable_shared_from_this<WriteSession> {
 public:
  WriteSession(const NodeParts* parts, const Caller& caller, StreamId stream, uint64_t writer);

  // Asks for the first message's bytes.
  void Begin() { AskForNext(); }

  void OnPacket(StreamId stream, Packet packet) override;
  void OnPeerDone(StreamId stream) override;
  void OnClosed(StreamId stream, const absl::Status& status) override;

  void OnAdmitted() override;
  void OnRefused(absl::Status status) override;
  void OnStalled(absl::Status status) override;
  void OnRightsChanged() override {}  // In a simulation rights stay.

 private:
  enum class Admission { kNone, kWaits, kHolds };

  void AskForNext();
  void PumpSoon();
  // Lands the next message, if it is here and admitted.
  void Pump();
  void End(const absl::Status& status);
  void LetGo();

  const NodeParts* const parts_;
  const StreamId stream_;
  node::FrameWriter writer_;
  std::deque<grpc::ByteBuffer> frames_;
  Admission admission_ = Admission::kNone;
  bool client_done_ = false;
  bool over_ = false;
};

}  // namespace cairn::sim
