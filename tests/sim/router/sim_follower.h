// SimFollower: keeps one feed open to one holder's address, as the router's FeedFollower does, on
// the simulation's network.
//
// Not thread-safe. What stands at the address may change between two feeds.
#pragma once

#include "router/core/router_core.h"
#include "tests/sim/dice.h"
#include "tests/sim/world.h"

namespace cairn::sim {

class SimFollower final : public StreamEnd {
 public:
  // As in FeedFollower::Options.
  static constexpr absl::Duration kBackoffInitial = absl::Milliseconds(100);
  static constexpr absl::Duration kBackoffMax = absl::Seconds(2);
  static constexpr absl::Duration kSilenceMax = absl::Seconds(10);

  // Borrows all; `router` is the host that follows, `node` the one that it follows.
  SimFollower(World* world, router::RouterCore* core, router::HolderIndex holder, HostId router,
              HostId node, uint64_t seed);
  ~SimFollower() override;

  void OnPacket(StreamId stream, Packet packet) override;
  void OnClosed(StreamId stream, const absl::Status& status) override;

  // Nothing is on its way, and a heartbeat came after the last thing that the network did to the
  // feed: what the core says of the holder is what the node says.
  bool UpToDate() const;
  uint64_t resyncs_asked() const { return resyncs_asked_; }

 private:
  void Connect();
  void Ended(const absl::Status& why);
  void WatchSilence(StreamId stream);

  World* const world_;
  router::RouterCore* const core_;
  const router::HolderIndex holder_;
  const HostId router_;
  const HostId node_;
  Dice dice_;
  StreamId stream_ = 0;  // 0: none.
  absl::Time began_at_;
  absl::Time last_heard_at_;
  absl::Time last_heartbeat_sent_at_ = absl::InfinitePast();
  absl::Duration backoff_ = kBackoffInitial;
  uint64_t resyncs_asked_ = 0;
};

}  // namespace cairn::sim
