#include "tests/sim/worker/sim_prompt.h"

#include "common/base/check.h"

namespace cairn::sim {

SimPrompt::SimPrompt(const BlockHasher& hasher, const NamespaceHandle* name_space,
                     std::vector<SimRegion> regions)
    : name_space_(name_space),
      regions_(std::move(regions)),
      prompt_(Make(hasher, *name_space, regions_)) {}

Prompt SimPrompt::Make(const BlockHasher& hasher, const NamespaceHandle& name_space,
                       const std::vector<SimRegion>& regions) {
  std::vector<Region> borrowed;
  for (const SimRegion& region : regions) {
    borrowed.push_back({.scope = region.scope, .tokens = region.tokens, .external_ids = {}});
  }
  absl::StatusOr<Prompt> prompt = Prompt::Make(hasher, name_space, borrowed);
  CAIRN_CHECK_OK(prompt.status());
  return *std::move(prompt);
}

}  // namespace cairn::sim
