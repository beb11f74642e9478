// Status codes, 3.9: a lease or token of another tenant is answered as one that nobody knows:
// ABORTED, and nothing happens.
#pragma once

#include "tests/sim/invariants/invariant.h"

namespace cairn::sim {

class ForeignIdsRefused final : public Invariant {
 public:
  explicit ForeignIdsRefused(const Scene* scene) : Invariant(scene, "foreign_ids_refused") {}

  void OnNodeCall(const SeenCall& call) override;
};

}  // namespace cairn::sim
