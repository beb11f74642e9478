// Cluster: the processes of one simulation: a router, nodes, workers and a stranger, each with its
// lives, and what harm can be done to them.
//
// Not thread-safe.
#pragma once

#include <memory>
#include <vector>

#include "tests/sim/chaos.h"
#include "tests/sim/fleet_view.h"
#include "tests/sim/sim_options.h"
#include "tests/sim/worker/sim_worker.h"
#include "tests/sim/worker/stranger.h"

namespace cairn::sim {

// How a place starts; by place, or absent: a sound node.
using NodeMutations = std::vector<NodeMutation*>;

class Cluster final : public FleetView, public FaultTarget {
 public:
  // Borrows all. Everything is down before Start.
  Cluster(World* world, const SimOptions& options, const PromptBook* book, Workload* workload,
          const NodeMutations& mutations);
  ~Cluster() override;

  void Start();
  // Nothing more goes down; what is down comes back, at its time.
  void EndFaults() { faults_end_ = true; }
  bool AllUp() const;

  size_t jobs() const;
  absl::Time oldest_job_began_at() const;
  SimWorker* worker(size_t place) { return workers_[place].process.get(); }

  HostId router_host() const { return kRouterHost; }
  HostId stranger_host() const { return kStrangerHost; }
  std::vector<HostId> node_hosts() const;

  size_t node_count() const override { return nodes_.size(); }
  const SimNode* node(size_t place) const override { return nodes_[place].process.get(); }
  absl::Time node_changed_at(size_t place) const override { return nodes_[place].changed_at; }
  const SimRouter* router() const override { return router_.process.get(); }
  absl::Time router_changed_at() const override { return router_.changed_at; }
  bool router_stalled_within(absl::Duration span) const override;

  void KillNode(size_t place, absl::Duration down_for) override;
  void DrainNode(size_t place, absl::Duration grace, absl::Duration down_for) override;
  void StallNode(size_t place, absl::Duration stall) override;
  void DamageNode(size_t place) override;
  void PullBetween(size_t from, size_t to) override;
  void KillRouter(absl::Duration down_for) override;
  void StallRouter(absl::Duration stall) override;
  void KillWorker(size_t place, absl::Duration down_for) override;
  void StallWorker(size_t place, absl::Duration stall) override;
  void BlockNodeAndRouter(size_t place, bool both_ways, absl::Duration block) override;
  void BlockNodeAndWorker(size_t place, size_t worker, bool both_ways,
                          absl::Duration block) override;

 private:
  static constexpr HostId kRouterHost = 1;
  static constexpr HostId kStrangerHost = 2;
  static constexpr HostId kFirstNodeHost = 3;

  template <typename Process>
  struct Slot {
    HostId host = 0;
    std::string name;
    std::unique_ptr<Process> process;  // Null: down.
    uint64_t lives = 0;
    absl::Time changed_at;
  };

  void StartNode(size_t place);
  void TakeDown(size_t place, absl::Duration down_for);
  // All blocks of one region of some prompt, mostly one of the last that the node has the first of.
  SimNode::PullWish AnyRegionOf(const SimNode& node);
  void StartRouter();
  void StartWorker(size_t place);
  template <typename Process>
  void Kill(Slot<Process>* slot);
  void Block(HostId a, HostId b, bool both_ways, absl::Duration block);

  World* const world_;
  const SimOptions options_;
  const PromptBook* const book_;
  Workload* const workload_;
  const NodeMutations mutations_;
  NodeMutation sound_;
  Dice dice_;
  Fleet fleet_;
  bool faults_end_ = false;
  std::vector<Slot<SimNode>> nodes_;
  Slot<SimRouter> router_;
  std::vector<Slot<SimWorker>> workers_;
  absl::Time router_stalled_until_ = absl::InfinitePast();
};

}  // namespace cairn::sim
