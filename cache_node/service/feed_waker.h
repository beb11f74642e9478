// FeedWaker: the thread on which watchers that the store signalled begin to pull.
//
// The store signals from within its callers' calls, where nothing may call it back. Signals for one
// watcher that come before its turn are one. Thread-safe. The destructor drops what is left and
// joins.
#pragma once

#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "cache_node/service/feed_router.h"

namespace cairn::node {

class FeedWaker {
 public:
  // Borrows `router`, which must outlive it.
  explicit FeedWaker(FeedRouter* router);
  ~FeedWaker();

  FeedWaker(const FeedWaker&) = delete;
  FeedWaker& operator=(const FeedWaker&) = delete;

  // Cheap; may be called from anywhere.
  void Signal(const std::vector<WatcherId>& watchers) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return stopping_ || !woken_.empty(); }

  FeedRouter* const router_;
  absl::Mutex mutex_;
  // At most the watchers that the store has, and those that went since.
  absl::flat_hash_set<WatcherId> woken_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // Last: it uses all of the above.
};

}  // namespace cairn::node
