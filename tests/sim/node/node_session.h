// NodeSession: a stream of payload or records that a simulated node serves. NodeParts: what such
// streams use of the node.
#pragma once

#include <functional>

#include "cache_node/service/counted_pin.h"
#include "cache_node/service/feed_messages.h"
#include "cache_node/service/in_flight_bytes.h"
#include "cache_node/store/block_store.h"
#include "tests/sim/node/node_mutation.h"
#include "tests/sim/world.h"

namespace cairn::sim {

// Borrowed; outlives the sessions.
struct NodeParts {
  World* world = nullptr;
  HostId host = 0;
  Life life;
  node::BlockStore* store = nullptr;
  node::InFlightBytes* in_flight = nullptr;
  const node::FeedMessages* feed_messages = nullptr;
  node::PinCount* get_pins = nullptr;
  NodeMutation* mutation = nullptr;
  // The session of the stream is over: it is destroyed soon.
  std::function<void(StreamId)> over;
};

class NodeSession : public StreamEnd {
 public:
  // Time for a heartbeat.
  virtual void OnHeartbeat() {}
  // The store has something for this watcher.
  virtual void OnFeed(node::WatcherId /*watcher*/) {}
  // All that the store had for its watcher is away.
  virtual bool FeedIsIdle() const { return true; }
};

}  // namespace cairn::sim
