// RankThreads: threads that stand for the ranks of one worker: each does its part of a call, all at
// once, and a call ends when the last has.
//
// Run is for one thread at a time.
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace cairn::bench {

class RankThreads {
 public:
  explicit RankThreads(size_t ranks);
  ~RankThreads();
  RankThreads(const RankThreads&) = delete;
  RankThreads& operator=(const RankThreads&) = delete;

  // Calls `work(rank)` on each rank's thread. The first failure, if any.
  absl::Status Run(const std::function<absl::Status(size_t)>& work) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void RunRank(size_t rank) ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Mutex mutex_;
  const std::function<absl::Status(size_t)>* work_ ABSL_GUARDED_BY(mutex_) = nullptr;
  uint64_t turn_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t running_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace cairn::bench
