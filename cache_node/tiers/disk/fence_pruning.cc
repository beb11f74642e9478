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
  size_t left = fences.size();
  const auto forget = [&](DiskTier::Fence& fence) {
    pruning.forgotten.push_back(std::move(fence));
    --left;
  };
  std::vector<DiskTier::Fence> others;
  for (DiskTier::Fence& fence : fences) {
    if (!fence.tenant.empty() && fence.sequence < below) {
      forget(fence);
    } else {
      others.push_back(std::move(fence));
    }
  }
  for (size_t i = 0; left > fences_max; ++i) {
    if (others[i].sequence >= below) pruning.dead_up_to = others[i].sequence;
    forget(others[i]);
  }
  return pruning;
}

}  // namespace cairn::node
