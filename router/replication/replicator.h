// Replicator: hot prefixes copied to further nodes, beside the router's calls.
//
// Told of each prompt that was routed, after the core let go of its lock; decides (HotPrefixes) and
// starts copies, which are made elsewhere (CopyTransport). Its lock is held for a decision only.
// What it does changes no answer by itself: a copy that came is told by its node's feed. Thread-
// safe. Borrows clock and transport; the transport calls nobody back after the Replicator is gone,
// so it ends first.
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "router/replication/copy_transport.h"
#include "router/replication/hot_prefixes.h"

namespace cairn::router {

class Replicator {
 public:
  Replicator(const ReplicationOptions& options, const Clock* clock, CopyTransport* transport)
      : clock_(clock), transport_(transport), hot_(options) {}

  Replicator(const Replicator&) = delete;
  Replicator& operator=(const Replicator&) = delete;

  void OnRouted(const RoutedPrompt& prompt) ABSL_LOCKS_EXCLUDED(mutex_);

  HotPrefixes::Counters counters() const ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t outstanding_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void OnDone(const CopyOrder& order, const CopyResult& result) ABSL_LOCKS_EXCLUDED(mutex_);

  const Clock* const clock_;
  CopyTransport* const transport_;
  mutable absl::Mutex mutex_;
  HotPrefixes hot_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn::router
