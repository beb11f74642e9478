// SpinningPool: a WorkerPool of plain threads for tests and benches.
//
// Threads that wait spin for a while before they sleep, so that a bench of short runs measures
// kernels and not wake-ups. One Run at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "kernels/worker_pool.h"

namespace cairn::kernels {

class SpinningPool final : public WorkerPool {
 public:
  explicit SpinningPool(uint32_t workers) {
    for (uint32_t i = 1; i < workers; ++i) threads_.emplace_back([this] { Work(); });
  }

  ~SpinningPool() override {
    stopping_ = true;
    Wake();
    for (std::thread& thread : threads_) thread.join();
  }

  uint32_t workers() const override { return static_cast<uint32_t>(threads_.size()) + 1; }

  void Run(uint32_t count, void (*task)(void* context, uint32_t index), void* context) override {
    task_ = task;
    context_ = context;
    count_ = count;
    next_ = 0;
    busy_ = static_cast<uint32_t>(threads_.size());
    Wake();
    TakeTasks();
    while (busy_.load() != 0) Pause();
  }

 private:
  static constexpr int kSpins = 1 << 16;

  static void Pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

  void Wake() {
    ++generation_;
    generation_.notify_all();
  }

  void TakeTasks() {
    for (uint32_t i = next_++; i < count_; i = next_++) task_(context_, i);
  }

  void Work() {
    for (uint32_t seen = 0;;) {
      for (int i = 0; i < kSpins && generation_.load() == seen; ++i) Pause();
      generation_.wait(seen);
      ++seen;
      if (stopping_) return;
      TakeTasks();
      --busy_;
    }
  }

  std::vector<std::thread> threads_;
  std::atomic<uint32_t> generation_{0};
  std::atomic<uint32_t> next_{0};
  std::atomic<uint32_t> busy_{0};
  std::atomic<bool> stopping_{false};
  void (*task_)(void* context, uint32_t index) = nullptr;
  void* context_ = nullptr;
  uint32_t count_ = 0;
};

}  // namespace cairn::kernels
