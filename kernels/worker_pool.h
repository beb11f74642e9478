// WorkerPool: the threads of whoever calls a kernel. Kernels start none of their own.
#pragma once

#include <cstdint>

namespace cairn::kernels {

class WorkerPool {
 public:
  virtual ~WorkerPool() = default;

  // How many tasks can run at once, the calling thread included: at least 1.
  virtual uint32_t workers() const = 0;

  // Calls task(context, i) once for each i in [0, count), on any threads and in any order, and
  // returns when all calls have returned. Tasks do not wait for each other, so that one thread may
  // run them all.
  virtual void Run(uint32_t count, void (*task)(void* context, uint32_t index), void* context) = 0;
};

// Runs everything on the calling thread.
class InlinePool final : public WorkerPool {
 public:
  uint32_t workers() const override { return 1; }
  void Run(uint32_t count, void (*task)(void* context, uint32_t index), void* context) override {
    for (uint32_t i = 0; i < count; ++i) task(context, i);
  }
};

}  // namespace cairn::kernels
