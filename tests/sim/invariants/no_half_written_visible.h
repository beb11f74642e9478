// 3.2: a block is shown only when all segments of its required groups were committed in this life
// of the node.
#pragma once

#include "absl/strings/str_cat.h"
#include "tests/sim/invariants/shown_blocks.h"

namespace cairn::sim {

class NoHalfWrittenVisible final : public ShownBlocks {
 public:
  explicit NoHalfWrittenVisible(const Scene* scene)
      : ShownBlocks(scene, "no_half_written_visible") {}

 private:
  void OnShown(const Shown& shown) override {
    for (const Truth::BlockName& name : {Own(shown), Public(shown)}) {
      if (truth().MayBeThere(shown.node, name) || truth().WasRemoved(shown.node, name)) return;
    }
    // Another tenant's is another invariant's.
    const KeyFacts* facts = book().Find(shown.key);
    if (facts != nullptr && facts->scope.tenant != shown.tenant &&
        facts->scope.tenant != kPublicTenant) {
      return;
    }
    Violated(absl::StrCat(Describe(shown), ", which was never committed there"));
  }
};

}  // namespace cairn::sim
