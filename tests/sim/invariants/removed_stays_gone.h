// 3.1, 3.7: what was deleted, cleared with its scope, retired with its namespace or quarantined is
// not shown again before it is committed anew.
#pragma once

#include "absl/strings/str_cat.h"
#include "tests/sim/invariants/shown_blocks.h"

namespace cairn::sim {

class RemovedStaysGone final : public ShownBlocks {
 public:
  explicit RemovedStaysGone(const Scene* scene) : ShownBlocks(scene, "removed_stays_gone") {}

 private:
  void OnShown(const Shown& shown) override {
    bool removed = false;
    for (const Truth::BlockName& name : {Own(shown), Public(shown)}) {
      if (truth().MayBeThere(shown.node, name)) return;
      removed = removed || truth().WasRemoved(shown.node, name);
    }
    if (removed) Violated(absl::StrCat(Describe(shown), ", which was removed there"));
  }
};

}  // namespace cairn::sim
