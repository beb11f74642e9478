// RequestQueue: a bounded queue of requests, from the thread that reads a trace to the workers.
//
// First in, first out. Thread-safe.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/replay/trace.h"

namespace cairn::replay {

class RequestQueue {
 public:
  explicit RequestQueue(size_t requests_max) : requests_max_(requests_max) {}

  // Waits for room. False, and the request is dropped, when the queue was ended.
  bool Push(TraceRequest request) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(this, &RequestQueue::HasRoomOrEnded));
    if (ended_) return false;
    requests_.push_back(std::move(request));
    return true;
  }

  // Waits for a request; nothing when the queue was ended and is empty.
  std::optional<TraceRequest> Pop() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(this, &RequestQueue::HasRequestOrEnded));
    if (requests_.empty()) return std::nullopt;
    TraceRequest request = std::move(requests_.front());
    requests_.pop_front();
    return request;
  }

  // Nothing more comes; what is queued is still given out.
  void End() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    ended_ = true;
  }

 private:
  bool HasRoomOrEnded() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return ended_ || requests_.size() < requests_max_;
  }
  bool HasRequestOrEnded() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return ended_ || !requests_.empty();
  }

  const size_t requests_max_;
  absl::Mutex mutex_;
  std::deque<TraceRequest> requests_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace cairn::replay
