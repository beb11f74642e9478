#include "cache_node/tiers/device/device_memory.h"

#include <utility>

#include "absl/status/status.h"
#include "common/base/check.h"

namespace cairn::node {

absl::StatusOr<std::unique_ptr<DeviceMemory>> DeviceMemory::Create(kernels::Device* device,
                                                                   uint64_t pool_bytes) {
  std::unique_ptr<kernels::DevicePool> pool;
  const kernels::Problem problem = kernels::DevicePool::Make(device, pool_bytes, &pool);
  if (!problem.empty()) {
    const uint64_t bytes_min =
        kernels::DevicePool::kSegmentsAtLeast * kernels::DevicePool::kSegmentAlignBytes;
    return pool_bytes < bytes_min ? absl::InvalidArgumentError(problem)
                                  : absl::ResourceExhaustedError(problem);
  }
  return std::unique_ptr<DeviceMemory>(new DeviceMemory(std::move(pool)));
}

DeviceMemory::SegmentInfo DeviceMemory::Info(uint32_t index) const {
  const kernels::DevicePool::SegmentInfo info = pool_->Info(index);
  return {.slot_class = {.tenant = info.slot_class.owner, .slot_bytes = info.slot_class.slot_bytes},
          .slots = info.slots,
          .slots_used = info.slots_used};
}

std::optional<SlotRef> DeviceMemory::Allocate(const SlotClass& slot_class) {
  CAIRN_CHECK(slot_class.tenant != 0);
  kernels::DevicePool::Slot slot;
  if (!pool_->Allocate({slot_class.tenant, slot_class.slot_bytes}, &slot)) return std::nullopt;
  return SlotRef{slot.segment, slot.slot};
}

void DeviceMemory::Free(SlotRef slot) { pool_->Free({slot.segment, slot.slot}); }

std::byte* DeviceMemory::Address(SlotRef slot) const {
  return pool_->Address({slot.segment, slot.slot});
}

uint64_t DeviceMemory::Generation(SlotRef slot) const {
  return pool_->Generation({slot.segment, slot.slot});
}

}  // namespace cairn::node
