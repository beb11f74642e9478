// StreamEnd: whoever is at one end of a stream of the fake network. Acceptor: a process that
// serves.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/rpc/caller_identity.h"
#include "tests/sim/network/packet.h"

namespace cairn::sim {

using StreamId = uint64_t;

// Called by the network as events of the scheduler, never from within a call to the network. May
// call the network, and may be destroyed, in any of these.
class StreamEnd {
 public:
  virtual ~StreamEnd() = default;
  virtual void OnPacket(StreamId stream, Packet packet) = 0;
  // At a server: the client sends no more.
  virtual void OnPeerDone(StreamId /*stream*/) {}
  // A packet that was sent is away: the next may follow.
  virtual void OnSent(StreamId /*stream*/) {}
  // The last call. At a client: how the call ended. At a server: the client is gone.
  virtual void OnClosed(StreamId stream, const absl::Status& status) = 0;
};

class Acceptor {
 public:
  virtual ~Acceptor() = default;
  // The end that will hear of it; it lives until OnClosed, Finish or Detach.
  virtual StreamEnd* Accept(StreamId stream, Method method, const Caller& caller) = 0;
};

}  // namespace cairn::sim
