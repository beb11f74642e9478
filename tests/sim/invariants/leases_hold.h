// 3.3: what is leased can be read until the lease can be over: all of its readers ended, their time
// (on the node's guarded clock) passed, or a block of it was removed by someone's will.
#pragma once

#include "tests/sim/invariants/invariant.h"

namespace cairn::sim {

class LeasesHold final : public Invariant {
 public:
  explicit LeasesHold(const Scene* scene) : Invariant(scene, "leases_hold") {}

  void OnFrameSent(const SeenFrame& frame) override;
  void OnGetEnded(const SeenGetEnd& end) override;

 private:
  // The lease, when it cannot be over.
  const Truth::Lease* FindCertain(const Life& node, const std::string& tenant,
                                  const std::string& lease) const;
};

}  // namespace cairn::sim
