// PullBoard: which blocks pulls have in hand, so that each is fetched once for all who ask.
//
// Whoever asks for a block that nobody has in hand takes it in hand and must end it, whatever comes
// of it; who asks for it meanwhile is given the same outcome. Bounded, all together and by tenant.
// Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "cache_node/pull/pull_types.h"
#include "common/base/bytes16.h"

namespace cairn::node {

class PullBoard {
 public:
  static constexpr size_t kBlocksMax = 16384;
  // So that one tenant does not keep the others from pulling.
  static constexpr size_t kBlocksPerTenantMax = 8192;

  // One block on its way; shared by all calls that ask for it and the one that brings it.
  class Flight {
   private:
    friend class PullBoard;
    bool over = false;
    PullOutcome outcome = PullOutcome::kInProgress;
    std::shared_ptr<const std::string> why;
  };
  using FlightRef = std::shared_ptr<Flight>;

  struct Joined {
    std::vector<FlightRef> flights;  // One a key.
    std::vector<bool> own;           // One a key: the caller is to bring it.
  };

  // RESOURCE_EXHAUSTED with a retry delay over a bound, and nothing is joined.
  absl::StatusOr<Joined> Join(const PullTarget& target, absl::Span<const BlockKey> keys)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Of one that was joined as own, once. `why`, for people, may be null; shared by all blocks that
  // one failure ended.
  void End(const PullTarget& target, const BlockKey& key, PullOutcome outcome,
           std::shared_ptr<const std::string> why = nullptr) ABSL_LOCKS_EXCLUDED(mutex_);

  // Nothing while it is in hand.
  std::optional<PullOutcome> OutcomeOf(const FlightRef& flight) const ABSL_LOCKS_EXCLUDED(mutex_);
  // As it ended; null where nothing was said.
  std::shared_ptr<const std::string> WhyOf(const FlightRef& flight) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until it is over, or Stop; then kInProgress.
  PullOutcome Await(const FlightRef& flight) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends all waits, now and later.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  size_t blocks() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Id {
    std::string tenant;
    Fingerprint fingerprint;
    BlockKey key;
    friend bool operator==(const Id&, const Id&) = default;
    template <typename H>
    friend H AbslHashValue(H state, const Id& id) {
      return H::combine(std::move(state), id.tenant, id.fingerprint, id.key);
    }
  };

  mutable absl::Mutex mutex_;
  absl::flat_hash_map<Id, FlightRef> in_hand_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, size_t> by_tenant_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace cairn::node
