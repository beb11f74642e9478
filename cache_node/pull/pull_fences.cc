#include "cache_node/pull/pull_fences.h"

#include <algorithm>
#include <utility>

namespace cairn::node {

void PullFences::Add(Fence fence, absl::Time now) {
  fence.until_unix_ms = absl::ToUnixMillis(now + kClocksApart);
  {
    absl::MutexLock lock(&mutex_);
    fences_.push_back(std::move(fence));
    if (fences_.size() > kFencesMax) {
      floor_unix_ms_ = std::max(floor_unix_ms_, fences_.front().until_unix_ms);
      fences_.pop_front();
    }
  }
  generation_.fetch_add(1, std::memory_order_release);
}

void PullFences::Retired(const Fingerprint& fingerprint, absl::Time now) {
  Add({.fingerprint = fingerprint}, now);
}

void PullFences::Cleared(const Fingerprint& fingerprint, absl::string_view tenant,
                         const BlockKey& scope_digest, absl::Time now) {
  Add({.fingerprint = fingerprint, .tenant = std::string(tenant), .scope_digest = scope_digest},
      now);
}

void PullFences::Purged(uint64_t writer, int64_t since_unix_ms, absl::Time now) {
  Add({.writer = writer, .since_unix_ms = since_unix_ms}, now);
}

bool PullFences::Meets(const Fence& fence, const PullTarget& target, const BlockKey& scope_digest,
                       const Provenance& provenance) {
  if (provenance.written_unix_ms > fence.until_unix_ms) return false;
  if (fence.fingerprint.has_value() && *fence.fingerprint != target.fingerprint) return false;
  if (fence.scope_digest.has_value() &&
      (*fence.scope_digest != scope_digest || fence.tenant != target.tenant)) {
    return false;
  }
  if (!fence.writer.has_value()) return true;
  return provenance.IsBy(*fence.writer) &&
         provenance.IsWithin(fence.since_unix_ms, fence.until_unix_ms);
}

bool PullFences::Refuses(const PullTarget& target, const BlockKey& scope_digest,
                         const Provenance& provenance) const {
  absl::ReaderMutexLock lock(&mutex_);
  if (provenance.written_unix_ms <= floor_unix_ms_ && floor_unix_ms_ != 0) return true;
  return std::any_of(fences_.begin(), fences_.end(), [&](const Fence& fence) {
    return Meets(fence, target, scope_digest, provenance);
  });
}

}  // namespace cairn::node
