// NodeFollowers: a FeedFollower for each node that there is, as a source of membership says.
//
// Apply belongs to one thread at a time; the rest is thread-safe. Borrows its parts, which must
// outlive it. The core's holders are added and removed by it alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "router/ids.h"
#include "router/membership/member.h"
#include "router/service/feed_follower.h"

namespace cairn::router {

class NodeFollowers {
 public:
  struct Entry {
    HolderIndex holder = 0;
    std::string address;
    bool held_back = false;
    FeedFollower::Status status;
  };
  // Over all that were ever followed, where they are counts of what happened.
  struct Totals {
    uint64_t feeds_ended = 0;
    uint64_t messages = 0;
    uint64_t shards_asked_again = 0;
    uint64_t partial_heartbeats = 0;
    // Nodes that joined and left.
    uint64_t joined = 0;
    uint64_t left = 0;
    // Of the last list, those over the bound.
    uint64_t over_bound = 0;
  };

  // Follows nobody yet, and never more than `nodes_max`.
  NodeFollowers(size_t nodes_max, const FeedFollower::Options& options, FeedFollower::Parts parts);
  // As Stop.
  ~NodeFollowers();

  NodeFollowers(const NodeFollowers&) = delete;
  NodeFollowers& operator=(const NodeFollowers&) = delete;

  // Follows exactly these from now on, the first `nodes_max` of them. What left gets nothing new at
  // once; returns when its feeds have ended. A member whose identity changed is a new node.
  void Apply(absl::Span<const Member> members) ABSL_LOCKS_EXCLUDED(mutex_);

  // In the order in which they joined.
  std::vector<Entry> Entries() const ABSL_LOCKS_EXCLUDED(mutex_);
  Totals totals() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends all feeds, for good.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Followed {
    HolderIndex holder = 0;
    std::string identity;
    bool held_back = false;
    std::unique_ptr<FeedFollower> follower;
  };

  void RemoveAllBut(absl::Span<const Member> members) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends their feeds, and waits until they have.
  void End(std::vector<Followed> ended) ABSL_LOCKS_EXCLUDED(mutex_);
  // False when it is not followed.
  bool Update(const Member& member) ABSL_LOCKS_EXCLUDED(mutex_);
  void Join(const Member& member) ABSL_LOCKS_EXCLUDED(mutex_);
  void Log(absl::string_view line) const;

  const size_t nodes_max_;
  const FeedFollower::Options options_;
  const FeedFollower::Parts parts_;
  mutable absl::Mutex mutex_;
  std::vector<Followed> followed_ ABSL_GUARDED_BY(mutex_);
  Totals gone_ ABSL_GUARDED_BY(mutex_);  // Without those of followed_.
};

}  // namespace cairn::router
