// 3.4: a lookup counts consecutive blocks from the start, a lease covers no more than those, and a
// reserve answers nothing behind the first block that it refused. A route matches whole blocks of
// the prompt.
#pragma once

#include "tests/sim/invariants/invariant.h"

namespace cairn::sim {

class NoHoleCounted final : public Invariant {
 public:
  explicit NoHoleCounted(const Scene* scene) : Invariant(scene, "no_hole_counted") {}

  void OnNodeCall(const SeenCall& call) override;
  void OnRouterCall(const SeenCall& call) override;

 private:
  void CheckLookup(const Life& node, const v1::LookupResponse& response) const;
  void CheckReserve(const Life& node, const v1::ReserveResponse& response) const;
};

}  // namespace cairn::sim
