// GatedTrace: the requests of a test as a trace of which only so many may be read.
//
// Allow may be called on any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/replay/trace.h"

namespace cairn::testing {

class GatedTrace final : public replay::TraceReader {
 public:
  explicit GatedTrace(std::vector<replay::TraceRequest> requests)
      : requests_(std::move(requests)) {}

  // The first `count` requests may be read; never takes back what was allowed.
  void Allow(size_t count) {
    absl::MutexLock lock(&mutex_);
    if (count > allowed_) allowed_ = count;
  }

  uint32_t block_tokens() const override { return 0; }

 private:
  // Waits until it may.
  absl::StatusOr<std::optional<replay::TraceRequest>> Read() override {
    if (read_ == requests_.size()) return std::nullopt;
    absl::MutexLock lock(&mutex_);
    const auto open = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return read_ < allowed_; };
    mutex_.Await(absl::Condition(&open));
    return requests_[read_++];
  }

  const std::vector<replay::TraceRequest> requests_;
  size_t read_ = 0;  // The reader's.
  absl::Mutex mutex_;
  size_t allowed_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace cairn::testing
