// DeviceMemory: the slots of a device, as the store knows those of host memory.
//
// The pool itself is kernels/device/device_pool.h: segments of one class each, of which one that
// nobody uses serves any class, so that nothing is made anew. Bookkeeping alone; who holds a slot
// copies to and from its address through the DeviceTier. Not thread-safe: under the store's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "cache_node/tiers/slot_class.h"
#include "kernels/device/device_pool.h"

namespace cairn::node {

class DeviceMemory {
 public:
  struct SegmentInfo {
    SlotClass slot_class;  // Of an unused one: the last it had.
    uint32_t slots = 0;
    uint32_t slots_used = 0;
  };

  // INVALID_ARGUMENT when `pool_bytes` is too small; RESOURCE_EXHAUSTED when the device refuses.
  // Borrows the device, which outlives it.
  static absl::StatusOr<std::unique_ptr<DeviceMemory>> Create(kernels::Device* device,
                                                              uint64_t pool_bytes);

  uint64_t pool_bytes() const { return pool_->pool_bytes(); }
  uint64_t slot_bytes_max() const { return pool_->slot_bytes_max(); }
  uint64_t used_bytes() const { return pool_->used_bytes(); }
  uint32_t segment_count() const { return pool_->segment_count(); }
  SegmentInfo Info(uint32_t index) const;

  // Nothing: none is free, or it is larger than slot_bytes_max.
  std::optional<SlotRef> Allocate(const SlotClass& slot_class);
  void Free(SlotRef slot);
  // An address of the device's: the processor may read it only where the device is emulated.
  std::byte* Address(SlotRef slot) const;
  // Rises with each Free, and whenever the segment changes its class; never repeats for one
  // SlotRef.
  uint64_t Generation(SlotRef slot) const;

 private:
  explicit DeviceMemory(std::unique_ptr<kernels::DevicePool> pool) : pool_(std::move(pool)) {}

  const std::unique_ptr<kernels::DevicePool> pool_;
};

}  // namespace cairn::node
