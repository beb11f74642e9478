// 3.7, 4: what the router says that a node holds was committed in the life of the node that the
// router follows: nothing of an earlier life, and nothing that never was.
#pragma once

#include <set>
#include <string>

#include "tests/sim/invariants/invariant.h"

namespace cairn::sim {

class MatchesWereThere final : public Invariant {
 public:
  explicit MatchesWereThere(const Scene* scene) : Invariant(scene, "matches_were_there") {}

  void OnRouterCall(const SeenCall& call) override;

 private:
  // One holder's part of an answer.
  struct Match {
    const std::string& node_id;
    uint64_t fed_tokens = 0;
    // Not fed, but about to be written: these may lie between those that are fed.
    uint64_t coming_tokens = 0;
  };

  void Check(const SeenCall& call, const std::string& fingerprint, const std::string& keys,
             const Match& match) const;
  // The node's life, when it lives and the router follows it.
  const SimNode* Followed(const std::string& node_id) const;

  std::set<std::string> asked_;  // Request ids.
};

}  // namespace cairn::sim
