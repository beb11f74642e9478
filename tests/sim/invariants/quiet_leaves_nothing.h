// 3.3, 3.5: when all is quiet, nothing is held: no pin, lease, token, reservation or admitted byte
// at a node, no booking and no speculative mark at the router, which is EXACT on every node.
#pragma once

#include "tests/sim/invariants/invariant.h"

namespace cairn::sim {

class QuietLeavesNothing final : public Invariant {
 public:
  explicit QuietLeavesNothing(const Scene* scene) : Invariant(scene, "quiet_leaves_nothing") {}

  void OnQuiet() override;

  // What is still held, in words; empty: nothing.
  static std::string WhatIsLeft(const FleetView& fleet);
};

}  // namespace cairn::sim
