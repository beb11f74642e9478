// SimRouter: one life of a router: the real core and calls, on the simulation's clock and network.
//
// To end one, detach its host from the network first. Not thread-safe.
#pragma once

#include <memory>
#include <vector>

#include "router/core/router_core.h"
#include "router/service/router_calls.h"
#include "tests/sim/network/unary_server.h"
#include "tests/sim/router/sim_follower.h"
#include "tests/testing/seeded_random.h"

namespace cairn::sim {

struct SimRouterOptions {
  HostId host = 0;
  // By holder.
  std::vector<HostId> nodes;
  router::RouterOptions core;
};

class SimRouter final : public Acceptor {
 public:
  // As in the product.
  static constexpr absl::Duration kTick = absl::Milliseconds(100);

  SimRouter(World* world, const SimRouterOptions& options, const Life& life);

  StreamEnd* Accept(StreamId stream, Method method, const Caller& caller) override;

  const Life& life() const { return life_; }
  router::RouterCore* core() const { return core_.get(); }
  // The holder's part of the index is what its node said, and nothing is on its way.
  bool UpToDate(size_t holder) const { return followers_[holder]->UpToDate(); }

 private:
  void Tick();
  void Handle(const UnaryServer::Request& request);
  template <typename Request, typename Response>
  void Run(const UnaryServer::Request& asked,
           absl::Status (router::RouterCalls::*call)(const Caller&, const Request&, Response*)
               const);

  World* const world_;
  const HostId host_;
  const Life life_;
  testing::SeededRandom random_;
  Sha256BlockHasher hasher_;
  std::unique_ptr<router::RouterCore> core_;
  const router::RouterCalls calls_;
  UnaryServer unary_;
  std::vector<std::unique_ptr<SimFollower>> followers_;
};

}  // namespace cairn::sim
