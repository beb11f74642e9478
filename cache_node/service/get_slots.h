// GetSlots: the Get calls that run, and how many may. Each holds the pins of one frame, so their
// number bounds what slow readers keep from being evicted; Tick lets them see whether their reader
// has stalled.
//
// Thread-safe. Streams are called without the lock held; a stream is shared because Tick may be at
// it when its RPC ends.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"

namespace cairn::node {

class GetSlots {
 public:
  class Stream {
   public:
    virtual ~Stream() = default;
    // Time has passed.
    virtual void OnTick() = 0;
  };

  explicit GetSlots(uint32_t max) : max_(max) {}
  // All must have been given back.
  ~GetSlots();

  uint32_t max() const { return max_; }

  // False: all are taken.
  bool Take() ABSL_LOCKS_EXCLUDED(mutex_);
  // The stream that uses a slot that was taken; at once after Take.
  void Enter(std::shared_ptr<Stream> stream) ABSL_LOCKS_EXCLUDED(mutex_);
  // The stream has ended; its slot is free.
  void Give(const Stream* stream) ABSL_LOCKS_EXCLUDED(mutex_);

  // Called every few tens of milliseconds.
  void Tick() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const uint32_t max_;
  absl::Mutex mutex_;
  uint32_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<const Stream*, std::shared_ptr<Stream>> streams_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn::node
