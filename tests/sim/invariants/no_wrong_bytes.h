// 3.1: every byte that a node hands out, and every byte that a worker takes for good, is the one
// that was written for that key, group, slice and layer. What was damaged in memory may be handed
// out; nobody takes it for good.
#pragma once

#include "tests/sim/invariants/invariant.h"

namespace cairn::sim {

class NoWrongBytes final : public Invariant {
 public:
  explicit NoWrongBytes(const Scene* scene) : Invariant(scene, "no_wrong_bytes") {}

  void OnFrameSent(const SeenFrame& frame) override;
  void OnUsed(const SeenUse& use) override;
};

}  // namespace cairn::sim
