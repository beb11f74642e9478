// Device: one accelerator's memory, streams, events and copies.
//
// Work is given to a stream and happens later, in the order of that stream; streams know nothing of
// each other but by events. No call waits for such work, except Wait, Free and the destructor; what
// takes or gives memory (Allocate, Free, RegisterHost, UnregisterHost) may take long, so it belongs
// at the start and the end.
//
// Thread-safe. Streams and events belong to the device that made them, and outlive no device;
// nothing else is owned. A Problem says what failed, and nothing was done then. A device that has
// failed stays so: every later call says it again, and what was under way is undefined.
//
// It does not know what its bytes mean, nor who may overwrite which (slot_guards.h), and starts no
// kernels: those are given its streams. The standard library alone builds it (C++17).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/problem.h"

namespace cairn::kernels {

// Names of what a device made; plain values. An emulated device's are its own, CUDA's hold a
// cudaStream_t and a cudaEvent_t.
struct Stream {
  void* handle = nullptr;
};
struct Event {
  void* handle = nullptr;
};

enum class CopyDirection : uint8_t { kHostToDevice, kDeviceToHost, kDeviceToDevice };

// One of a batch.
struct DeviceCopy {
  void* to = nullptr;
  const void* from = nullptr;
  uint64_t bytes = 0;
};

class Device {
 public:
  struct Facts {
    std::string name;  // As "cuda:0 NVIDIA H200" or "emulated".
    uint64_t memory_bytes = 0;
  };
  enum class EventState : uint8_t { kPending, kDone };

  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  virtual const Facts& facts() const = 0;

  // --- Memory ---
  // Aligned to 256 bytes; what is in it is anything.
  virtual Problem Allocate(uint64_t bytes, std::byte** memory) = 0;
  // After all work that was given to the device. Null is fine.
  virtual void Free(std::byte* memory) = 0;
  // Copies from and to host memory need it registered: it is pinned until UnregisterHost. Whole
  // pages, none of them registered already.
  virtual Problem RegisterHost(void* memory, uint64_t bytes) = 0;
  virtual Problem UnregisterHost(void* memory) = 0;

  // --- Streams and events ---
  virtual Problem MakeStream(Stream* stream) = 0;
  // What was given to it still happens.
  virtual void DestroyStream(Stream stream) = 0;
  // One that was never recorded is done.
  virtual Problem MakeEvent(Event* event) = 0;
  virtual void DestroyEvent(Event event) = 0;
  // From now on the event stands for all that the stream was given so far.
  virtual Problem Record(Event event, Stream stream) = 0;
  // What the stream is given from now on happens after what the event stands for at the call.
  virtual Problem StreamWait(Stream stream, Event event) = 0;
  virtual Problem Poll(Event event, EventState* state) = 0;
  // Blocks the caller.
  virtual Problem Wait(Event event) = 0;

  // --- Copies ---
  // `count` of them, in no order among themselves; they must not overlap. The list is read before
  // the call returns, the bytes when the stream comes to it.
  virtual Problem CopyBatch(CopyDirection direction, const DeviceCopy* copies, size_t count,
                            Stream stream) = 0;

 protected:
  Device() = default;
};

}  // namespace cairn::kernels
