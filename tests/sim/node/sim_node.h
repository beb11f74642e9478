// SimNode: one life of a cache node: the real store, calls, frames and feed, on the simulation's
// clock and network.
//
// What its process would have of threads and RPC is events here; everything that decides is the
// product's. To end one, detach its host from the network first. Not thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "cache_node/pull/pull_fences.h"
#include "cache_node/service/node_calls.h"
#include "cache_node/service/request_memory.h"
#include "client/cpp/namespace_handle.h"
#include "tests/sim/dice.h"
#include "tests/sim/network/unary_server.h"
#include "tests/sim/node/node_session.h"
#include "tests/testing/seeded_random.h"

namespace cairn::sim {

struct SimNodeOptions {
  HostId host = 0;
  std::string node_id;
  std::string address;
  std::string worker_address;
  uint64_t pool_bytes = uint64_t{1} << 20;
  uint64_t in_flight_bytes_max = uint64_t{4} << 20;
  node::BlockStore::Options store;
};

class SimNode final : public Acceptor {
 public:
  // As in the product (Node).
  static constexpr absl::Duration kTick = absl::Milliseconds(50);
  static constexpr absl::Duration kTickAdvanceMax = absl::Milliseconds(500);
  static constexpr absl::Duration kHeartbeat = absl::Milliseconds(500);

  // `mutation` outlives it.
  SimNode(World* world, const SimNodeOptions& options, const Life& life, NodeMutation* mutation);
  ~SimNode() override;

  StreamEnd* Accept(StreamId stream, Method method, const Caller& caller) override;

  // Blocks of one scope, consecutive in a prompt.
  struct PullWish {
    const NamespaceHandle* name_space = nullptr;
    Scope scope;
    std::vector<BlockKey> keys;
  };
  // Copies what it has not of them from another node, in one event; their tenant has registered the
  // namespace. Now and then the transfer breaks, or the scope is cleared in the middle of it.
  void Pull(const SimNode& peer, const PullWish& wish, Dice* dice);

  // From now on it says that it is to go.
  void Drain() { facts_.SetDraining(); }

  const Life& life() const { return parts_.life; }
  const std::string& node_id() const { return facts_.identity().node_id; }
  const Incarnation& incarnation() const { return facts_.identity().incarnation; }
  bool draining() const { return facts_.draining(); }
  node::BlockStore* store() const { return store_.get(); }
  const node::StoreCounters& counters() const { return counters_; }
  node::InFlightBytes::Counts in_flight() const { return in_flight_.counts(); }
  // The time by which its leases and tokens expire.
  absl::Time guarded_now() const { return time_.Now(); }
  // Watchers have been sent all that changed.
  bool FeedsAreIdle() const;
  size_t waiting_lookups() const { return waiting_.size(); }

 private:
  struct WaitingLookup {
    Caller caller;
    v1::LookupRequest request;
    node::NodeCalls::PendingLookup lookup;
    absl::Time deadline;
  };

  void Tick();
  void Heartbeat();
  void Handle(UnaryServer::Request request);
  void HandleLookup(const UnaryServer::Request& request);
  void HandleGetLease(const UnaryServer::Request& request);
  void SweepLookupsSoon();
  void SweepLookups();
  // Runs `call` on the parsed request and answers.
  template <typename Request, typename Response>
  void Run(const UnaryServer::Request& asked,
           absl::Status (node::NodeCalls::*call)(const Caller&, const Request&, Response*));
  void Conclude(StreamId stream, Method method, const Caller& caller,
                const google::protobuf::Message& request, absl::Status status,
                google::protobuf::Message* response);
  void WakeFeeds(const std::vector<node::WatcherId>& watchers);
  void BurySoon(StreamId stream);
  void RegisterForPull(const PullWish& wish);
  void ClearDuringPull(const PullWish& wish);
  // A call that comes from no stream.
  template <typename Request, typename Response>
  void CallHere(Method method, const PullWish& wish, const Request& request,
                absl::Status (node::NodeCalls::*call)(const Caller&, const Request&, Response*));

  World* const world_;
  NodeMutation* const mutation_;
  testing::SeededRandom random_;
  GuardedTime time_;
  node::StoreCounters counters_;
  Sha256BlockHasher hasher_;
  bool sweep_is_coming_ = false;
  size_t wakes_coming_ = 0;
  const std::unique_ptr<node::BlockStore> store_;
  node::InFlightBytes in_flight_;
  node::RequestMemory memory_;
  node::NodeFacts facts_;
  node::FeedMessages feed_messages_;
  node::PinCount get_pins_;
  node::PullFences fences_;
  node::NodeCalls calls_;
  NodeParts parts_;
  UnaryServer unary_;
  uint64_t next_writer_ = 1;
  absl::btree_map<StreamId, WaitingLookup> waiting_;
  // Shared with the admission, where a stream is over before its last call.
  absl::btree_map<StreamId, std::shared_ptr<NodeSession>> sessions_;
};

}  // namespace cairn::sim
