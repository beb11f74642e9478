// 3.5: everything that a node counts agrees with what it holds (BlockStore::Audit), and nothing is
// over its bound; so for the router.
#pragma once

#include "tests/sim/invariants/invariant.h"

namespace cairn::sim {

class Bounds final : public Invariant {
 public:
  struct Limits {
    node::BlockStore::Options store;
    router::RouterOptions router;
    uint64_t in_flight_bytes_max = 0;
  };

  Bounds(const Scene* scene, const Limits& limits) : Invariant(scene, "bounds"), limits_(limits) {}

  void OnLook() override;

 private:
  void CheckNode(const SimNode& node) const;
  void CheckRouter(const SimRouter& router) const;
  void AtMost(const std::string& whose, const char* what, uint64_t is, uint64_t most) const;

  const Limits limits_;
};

}  // namespace cairn::sim
