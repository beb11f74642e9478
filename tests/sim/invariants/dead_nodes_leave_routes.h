// 3.8, 5: a node that died is out of routes within 2 s: its replica comes after those of living
// nodes, with nothing matched. Nobody stands after a replica whose node is out but others such.
#pragma once

#include <set>
#include <string>

#include "tests/sim/invariants/invariant.h"

namespace cairn::sim {

class DeadNodesLeaveRoutes final : public Invariant {
 public:
  // After the contract's 2 s: two ticks of the router, by which its guarded clock may be late.
  static constexpr absl::Duration kOutAfter = absl::Milliseconds(2200);

  explicit DeadNodesLeaveRoutes(const Scene* scene) : Invariant(scene, "dead_nodes_leave_routes") {}

  void OnRouterCall(const SeenCall& call) override;

 private:
  bool KnownDead(const std::string& node_id) const;

  std::set<std::string> asked_;  // Request ids.
};

}  // namespace cairn::sim
