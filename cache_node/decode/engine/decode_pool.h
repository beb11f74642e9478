// DecodePool: the threads of served attention's kernels.
//
// Where there are processors to spare, a thread that has nothing to do looks for work for a moment
// before it sleeps, as the next layer is most often on its way. A run never waits for a thread that
// has not begun: whoever runs takes what others do not. One Run at a time; the destructor joins.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "kernels/worker_pool.h"

namespace cairn::node {

class DecodePool final : public kernels::WorkerPool {
 public:
  // `workers`: with the thread that calls Run, so at least 1. `spin`: how long threads look.
  explicit DecodePool(uint32_t workers, absl::Duration spin = absl::ZeroDuration());
  ~DecodePool() override;

  uint32_t workers() const override { return static_cast<uint32_t>(threads_.size()) + 1; }
  void Run(uint32_t count, void (*task)(void* context, uint32_t index), void* context) override
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Task {
    void (*task)(void* context, uint32_t index) = nullptr;
    void* context = nullptr;
    uint32_t index = 0;
  };

  void Work() ABSL_LOCKS_EXCLUDED(mutex_);
  // Of the run that is under way. False: all are taken.
  bool Take(Task* task) ABSL_LOCKS_EXCLUDED(mutex_);
  void EndTask() ABSL_LOCKS_EXCLUDED(mutex_);
  // Looks for a while whether `value` is another one.
  bool SpinWhile(const std::atomic<uint64_t>& value, uint64_t same) const;

  const std::chrono::nanoseconds spin_;
  absl::Mutex mutex_;
  absl::CondVar work_;
  absl::CondVar done_;
  Task next_ ABSL_GUARDED_BY(mutex_);  // With its index of the next one.
  uint32_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t running_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // These two say, without the lock, that there is something to see under it.
  std::atomic<uint64_t> runs_{0};
  std::atomic<uint64_t> ended_{0};  // Tasks of all runs.
  std::vector<std::thread> threads_;
};

}  // namespace cairn::node
