#include "cache_node/store/disk_fences.h"

#include <algorithm>

#include "common/base/check.h"

namespace cairn::node {

DiskFences::Id DiskFences::IdOf(const DiskTier::Fence& fence) {
  return {fence.fingerprint, fence.tenant, fence.tenant.empty() ? BlockKey{} : fence.scope_digest};
}

void DiskFences::Raise(const DiskTier::Fence& fence) {
  uint64_t& sequence = raised_[IdOf(fence)];
  sequence = std::max(sequence, fence.sequence);
}

uint64_t DiskFences::SequenceOf(const DiskScope& scope) const {
  uint64_t sequence = all_;
  if (auto it = raised_.find(Id(scope.fingerprint, "", BlockKey{})); it != raised_.end()) {
    sequence = std::max(sequence, it->second);
  }
  auto it = raised_.find(Id(scope.fingerprint, scope.tenant, scope.scope_digest));
  return it == raised_.end() ? sequence : std::max(sequence, it->second);
}

void DiskFences::Hold(const DiskTier::Fence& fence) {
  Holding& holding = held_[IdOf(fence)];
  ++holding.calls;
  holding.sequence = std::min(holding.sequence, fence.sequence);
}

void DiskFences::Release(const DiskTier::Fence& fence) {
  auto it = held_.find(IdOf(fence));
  CAIRN_CHECK(it != held_.end() && it->second.calls > 0);
  if (--it->second.calls == 0) held_.erase(it);
}

uint64_t DiskFences::OldestHeld() const {
  uint64_t oldest = UINT64_MAX;
  for (const auto& [id, holding] : held_) oldest = std::min(oldest, holding.sequence);
  return oldest;
}

bool DiskFences::Held(const DiskScope& scope) const {
  if (held_.empty()) return false;
  return held_.contains(Id(scope.fingerprint, "", BlockKey{})) ||
         held_.contains(Id(scope.fingerprint, scope.tenant, scope.scope_digest));
}

}  // namespace cairn::node
