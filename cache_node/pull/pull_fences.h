// PullFences: what was removed here by somebody's will, so that no pull brings it back.
//
// A peer may not have been told yet to retire a namespace, clear a scope or purge a writer that
// this node was told of. So what was written before such a call is not pulled after it, by the time
// that travels with each block. Noted before the removal begins and looked at before each commit: a
// block is refused, or is there to be removed. Bounded: in place of fences that it forgets it
// refuses all that is as old as they are. A restart forgets all.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "cache_node/pull/pull_types.h"
#include "cache_node/tiers/provenance.h"
#include "common/base/bytes16.h"
#include "common/identity/fingerprint.h"

namespace cairn::node {

class PullFences {
 public:
  static constexpr size_t kFencesMax = 4096;
  // How far the wall clocks of two nodes may be apart. Refusing too much costs a miss.
  static constexpr absl::Duration kClocksApart = absl::Seconds(5);

  // Times are this node's wall clock.
  void Retired(const Fingerprint& fingerprint, absl::Time now);
  void Cleared(const Fingerprint& fingerprint, absl::string_view tenant,
               const BlockKey& scope_digest, absl::Time now);
  void Purged(uint64_t writer, int64_t since_unix_ms, absl::Time now);

  // Whether a block of this scope that was written so must not come in.
  bool Refuses(const PullTarget& target, const BlockKey& scope_digest,
               const Provenance& provenance) const;
  // Rises with each fence: while it is the same, so are the answers.
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

 private:
  struct Fence {
    int64_t until_unix_ms = 0;
    std::optional<Fingerprint> fingerprint = std::nullopt;  // None: of all.
    std::string tenant = {};
    std::optional<BlockKey> scope_digest = std::nullopt;  // None: of all tenants and scopes.
    std::optional<uint64_t> writer = std::nullopt;
    int64_t since_unix_ms = 0;
  };

  void Add(Fence fence, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  static bool Meets(const Fence& fence, const PullTarget& target, const BlockKey& scope_digest,
                    const Provenance& provenance);

  std::atomic<uint64_t> generation_{0};
  mutable absl::Mutex mutex_;
  std::deque<Fence> fences_ ABSL_GUARDED_BY(mutex_);  // Oldest first.
  int64_t floor_unix_ms_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace cairn::node
