// Executor: a few threads and a bounded queue, for work that must not run on gRPC's threads.
//
// Thread-safe. Tasks start in the order they were taken; with one thread they also end so. A full
// queue refuses instead of blocking, and the caller passes that on. Every task that was taken runs,
// also when the executor is being destroyed: a call that waits for it is always answered. Tasks do
// not throw.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace cairn {

class Executor {
 public:
  using Task = absl::AnyInvocable<void() &&>;

  struct Options {
    // For messages and the thread list.
    std::string name;
    int threads = 1;
    // Tasks that wait, beyond those that run.
    size_t queue_max = 0;
    // Bytes that waiting tasks hold, as Submit is told.
    uint64_t queue_bytes_max = 0;
    // Added to the threads' niceness: 0 for work that a caller waits for, more for background work.
    int nice = 0;
  };

  explicit Executor(Options options);
  // Runs what is queued, then ends the threads. Submit must not be called any more, except by
  // tasks, which get UNAVAILABLE.
  ~Executor();

  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // `bytes`: what the task keeps in memory until it has run. RESOURCE_EXHAUSTED naming the queue
  // and its bound when it is full; `task` is destroyed unrun then.
  absl::Status Submit(Task task, uint64_t bytes = 0) ABSL_LOCKS_EXCLUDED(mutex_);

  // Tasks that wait now.
  size_t queued() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Waiting {
    Task task;
    uint64_t bytes = 0;
  };

  void Run();
  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return stopping_ || !queue_.empty(); }

  const Options options_;
  mutable absl::Mutex mutex_;
  std::deque<Waiting> queue_ ABSL_GUARDED_BY(mutex_);
  uint64_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Tasks that run now, at most one a thread.
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace cairn
