// FeedRouter: finds the streams of the watchers that the store says have something to pull.
//
// Streams come and go while the store signals: a stream is shared between its RPC and a signal
// under way, and what is told to one that ended does nothing. Thread-safe; streams are called
// without the lock.
#pragma once

#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "cache_node/store/feed_hub.h"

namespace cairn::node {

class FeedRouter {
 public:
  class Stream {
   public:
    virtual ~Stream() = default;
    // There is something to pull.
    virtual void OnFeed() = 0;
    // It is time for a heartbeat.
    virtual void OnHeartbeat() = 0;
    // The stream should end with this.
    virtual void OnEnd(const absl::Status& status) = 0;
  };

  FeedRouter() = default;
  // No stream may be left.
  ~FeedRouter();

  void Add(WatcherId watcher, std::shared_ptr<Stream> stream) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(WatcherId watcher) ABSL_LOCKS_EXCLUDED(mutex_);

  // Unknown watchers are ignored: they ended a moment ago.
  void Wake(const std::vector<WatcherId>& watchers) ABSL_LOCKS_EXCLUDED(mutex_);
  void Heartbeat() ABSL_LOCKS_EXCLUDED(mutex_);
  void EndAll(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  size_t streams() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  std::vector<std::shared_ptr<Stream>> All() const ABSL_LOCKS_EXCLUDED(mutex_);

  mutable absl::Mutex mutex_;
  absl::flat_hash_map<WatcherId, std::shared_ptr<Stream>> streams_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn::node
