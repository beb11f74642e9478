// FencesHold: what was cleared or retired at a node does not come back to it from another, by the
// time at which it was written. A node that started anew has forgotten.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/invariants/invariant.h"

namespace cairn::sim {

class FencesHold final : public Invariant {
 public:
  explicit FencesHold(const Scene* scene) : Invariant(scene, "fences_hold") {}

  void OnNodeCall(const SeenCall& call) override;
  void OnPulled(const SeenPull& pull) override;

 private:
  struct Removal {
    Fingerprint fingerprint;
    std::string tenant;
    std::optional<BlockKey> scope_digest;  // None: all of the namespace, whosever.
    int64_t at_unix_ms = 0;
  };

  std::map<Life, std::vector<Removal>> removals_;
};

}  // namespace cairn::sim
