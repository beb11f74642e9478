// EmulatedDevice: a Device of plain memory, stricter than hardware.
//
// Work given to a stream is kept, and done when the order says. Copies read and write their bytes
// only then, so that a missing wait is seen as wrong bytes: of a source that changed meanwhile, or
// of a destination that was read before. New memory holds NaNs of every float format. Host memory
// that was not registered, and device memory outside of what was allocated, are refused.
//
// Orders: kLazy does what an event stands for when it is polled or waited for, and nothing else;
// kEager does everything at once, so that what may come early does; kRandom does some work of some
// stream at each call, by its seed. A test may also choose by itself: `Step`.
//
// Work of kernels and steps run under the device's lock, and must not call it. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "kernels/device/device.h"
#include "kernels/simt/memory_registry.h"

namespace cairn::kernels {

class EmulatedDevice final : public Device {
 public:
  enum class Order : uint8_t { kLazy, kEager, kRandom };

  struct Options {
    uint64_t memory_bytes = uint64_t{1} << 30;
    Order order = Order::kLazy;
    uint64_t seed = 1;
    // Of each event after it was recorded that many polls say that it is pending.
    uint32_t pending_polls = 0;
    // Told what is allocated, so that emulated kernels may touch it; borrowed, or null.
    simt::emulated::MemoryRegistry* registry = nullptr;
  };

  struct Counts {
    uint64_t copies = 0;  // Landed.
    uint64_t copied_bytes = 0;
    uint64_t waits = 0;  // Calls of Wait that found the event pending.
  };

  explicit EmulatedDevice(const Options& options);
  ~EmulatedDevice() override;

  const Facts& facts() const override { return facts_; }
  Problem Allocate(uint64_t bytes, std::byte** memory) override;
  void Free(std::byte* memory) override;
  Problem RegisterHost(void* memory, uint64_t bytes) override;
  Problem UnregisterHost(void* memory) override;
  Problem MakeStream(Stream* stream) override;
  void DestroyStream(Stream stream) override;
  Problem MakeEvent(Event* event) override;
  void DestroyEvent(Event event) override;
  Problem Record(Event event, Stream stream) override;
  Problem StreamWait(Stream stream, Event event) override;
  Problem Poll(Event event, EventState* state) override;
  Problem Wait(Event event) override;
  Problem CopyBatch(CopyDirection direction, const DeviceCopy* copies, size_t count,
                    Stream stream) override;

  // Work of a kernel, in the stream's order. What it answers fails the device.
  Problem Enqueue(Stream stream, std::function<Problem()> work);

  // --- For whoever chooses the order ---
  // Does the first of what the stream waits to do. False: nothing, or it waits for an event.
  bool Step(Stream stream);
  // What the stream was given and has not done.
  size_t PendingOf(Stream stream) const;
  // From now on every call says so.
  void Fail(const Problem& problem);
  Counts counts() const;
  size_t events() const;  // Made and not destroyed.

 private:
  struct StreamWork;
  // What one Record made an event stand for. Shared: who waits for it waits on when the event has
  // been recorded again, elsewhere, or is destroyed.
  struct Point {
    StreamWork* stream = nullptr;
    bool done = false;
    uint32_t polls = 0;
  };
  using PointRef = std::shared_ptr<Point>;
  struct Work {
    enum class Kind : uint8_t { kCopies, kRecord, kWait, kKernel };
    Kind kind = Kind::kCopies;
    std::vector<DeviceCopy> copies;
    PointRef point;  // Of kRecord and kWait.
    std::function<Problem()> kernel;
  };
  struct StreamWork {
    std::deque<Work> queue;
  };

  StreamWork* Of(Stream stream) const { return static_cast<StreamWork*>(stream.handle); }
  Problem Give(Stream stream, Work work);
  bool StepOf(StreamWork* stream);
  void Do(Work* work);
  void Finish(StreamWork* stream);
  void FinishAll();
  void FinishPoint(const Point& point);
  void StepSome();
  bool IsAllocated(const void* memory, uint64_t bytes) const;
  bool IsRegistered(const void* memory, uint64_t bytes) const;
  Problem CheckCopy(CopyDirection direction, const DeviceCopy& copy) const;

  const Options options_;
  const Facts facts_;

  mutable std::mutex mutex_;  // Guards all below.
  std::mt19937_64 random_;
  Problem failed_;
  std::map<const std::byte*, uint64_t> allocated_;   // Bytes by start.
  std::map<const std::byte*, uint64_t> registered_;  // Likewise, of host memory.
  uint64_t allocated_bytes_ = 0;
  std::vector<std::unique_ptr<StreamWork>> streams_;
  std::map<void*, PointRef> events_;  // By handle.
  uintptr_t last_event_ = 0;
  Counts counts_;
};

}  // namespace cairn::kernels
