// DeviceTier: the memory of one device, and batched copies between its slots and host memory.
//
// It owns the device and knows which host memory the device has pinned: the segments of the host
// tier, which tell it where they lie (MemoryPinner), so that copies go there without a buffer
// between. A copy waits, on the device, for whoever still reads or writes the slot (guards), and
// blocks its caller until it has landed: for threads of the movers. One copies in and one out at
// the same time.
//
// A device that failed once is out until the process ends: every copy is UNAVAILABLE, and
// `problem` says why. Thread-safe, but memory(), which is the store's. Knows no block.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "cache_node/tiers/device/device_memory.h"
#include "cache_node/tiers/memory_pinner.h"
#include "kernels/device/device.h"
#include "kernels/device/slot_guards.h"

namespace cairn::node {

// Of the slots' own bytes: `device` is a slot's address, or within it.
struct DeviceTransfer {
  std::byte* device = nullptr;
  absl::Span<uint8_t> host;  // Pinned.
};

class DeviceTier final : public MemoryPinner {
 public:
  struct Stats {
    uint64_t copied_in_bytes = 0;
    uint64_t copied_out_bytes = 0;
    bool failed = false;
  };

  // Takes the memory. As DeviceMemory::Create; UNAVAILABLE when the device fails at once.
  static absl::StatusOr<std::unique_ptr<DeviceTier>> Open(std::unique_ptr<kernels::Device> device,
                                                          uint64_t pool_bytes);
  // Nothing is under way, and no memory is pinned any more.
  ~DeviceTier() override;

  DeviceMemory& memory() { return *memory_; }
  kernels::Device& device() { return *device_; }
  // For work of others on its slots.
  kernels::SlotGuards& guards() { return *guards_; }

  absl::Status CopyIn(absl::Span<const DeviceTransfer> transfers);
  absl::Status CopyOut(absl::Span<const DeviceTransfer> transfers);

  void Pin(absl::Span<uint8_t> memory) override;
  void Unpin(absl::Span<uint8_t> memory) override;

  Stats GetStats() const;
  // Why it is out; empty while it is not.
  std::string problem() const;

 private:
  struct Lane {
    absl::Mutex mutex;  // Held for a batch: who comes second waits.
    kernels::Stream stream ABSL_GUARDED_BY(mutex);
    kernels::Event event ABSL_GUARDED_BY(mutex);
    std::atomic<uint64_t> bytes{0};
  };

  DeviceTier(std::unique_ptr<kernels::Device> device, std::unique_ptr<DeviceMemory> memory);
  kernels::Problem MakeLane(Lane* lane);
  void EndLane(Lane* lane);
  absl::Status Copy(Lane* lane, kernels::CopyDirection direction,
                    absl::Span<const DeviceTransfer> transfers);
  kernels::Problem CopyOn(Lane* lane, kernels::CopyDirection direction,
                          absl::Span<const DeviceTransfer> transfers)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lane->mutex);
  absl::Status Fail(const kernels::Problem& problem);

  const std::unique_ptr<kernels::Device> device_;
  const std::unique_ptr<DeviceMemory> memory_;
  std::unique_ptr<kernels::SlotGuards> guards_;
  Lane in_;
  Lane out_;
  mutable absl::Mutex mutex_;
  std::string problem_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn::node
