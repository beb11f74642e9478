// AllInvariants: every rule that a simulation watches. A new rule is a new file, and a line here.
#pragma once

#include <memory>
#include <vector>

#include "tests/sim/invariants/bounds.h"
#include "tests/sim/invariants/invariant.h"

namespace cairn::sim {

std::vector<std::unique_ptr<Invariant>> AllInvariants(const Scene* scene,
                                                      const Bounds::Limits& limits);

}  // namespace cairn::sim
