#include "cache_node/tiers/disk/fence_pruning.h"

#include <algorithm>
#include <utility>

namespace cairn::node {

FencePruning FencePruning::Of(std::vector<DiskTier::Fence> fences, uint64_t below,
                              size_t fences_max) {
  std::erase_if(fences, [](const DiskTier::Fence& fence) {
    return fence.tenant.empty() && fence.fingerprint == Fingerprint();
  });
  std::sort(fences.begin(), fences.end(), [](const DiskTier::Fence& a, const DiskTier::Fence& b) {
    return a.sequence < b.sequence;
  });
  FencePruning pruning;
  const size_t count = fences.size();
  std::vector<DiskTier::Fence> others;
  for (DiskTier::Fence& fence : fences) {
    const bool needless = !fence.tenant.empty() && fence.sequence < below;
    (needless ? pruning.forgotten : others).push_back(std::move(fence));
  }
  for (DiskTier::Fence& fence : others) {
    if (count - pruning.forgotten.size() <= fences_max) break;
    if (fence.sequence >= below) pruning.dead_up_to = fence.sequence;
    pruning.forgotten.push_back(std::move(fence));
  }
  return pruning;
}

}  // namespace cairn::node
