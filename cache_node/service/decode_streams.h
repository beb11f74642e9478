// DecodeStreams: the open decode streams, bounded, for who looks at all of them: rights, stalls, a
// drain.
//
// Thread-safe. A stream is called without the lock; it may be over by then.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace cairn::node {

class DecodeStreams {
 public:
  class Stream {
   public:
    virtual ~Stream() = default;
    // Every few tens of milliseconds.
    virtual void OnTick() = 0;
    virtual void OnEnd(const absl::Status& status) = 0;
  };

  explicit DecodeStreams(size_t streams_max) : streams_max_(streams_max) {}

  // False: there are as many as may be.
  bool Enter(std::shared_ptr<Stream> stream) ABSL_LOCKS_EXCLUDED(mutex_);
  void Leave(const Stream* stream) ABSL_LOCKS_EXCLUDED(mutex_);

  void Tick() ABSL_LOCKS_EXCLUDED(mutex_);
  void EndAll(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  size_t size() const ABSL_LOCKS_EXCLUDED(mutex_);
  size_t max() const { return streams_max_; }

 private:
  template <typename Call>
  void ForAll(const Call& call) ABSL_LOCKS_EXCLUDED(mutex_);

  const size_t streams_max_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<const Stream*, std::shared_ptr<Stream>> streams_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn::node
