// The tiers that have slots, for tests that all of them pass: each a small pool of sixteen
// segments.
#pragma once

#include <gmock/gmock.h>

#include <memory>
#include <random>
#include <set>

#include "cache_node/tiers/device/device_memory.h"
#include "cache_node/tiers/host_memory.h"
#include "kernels/device/emulated_device.h"

namespace cairn::node {

class HostSlotPool {
 public:
  using Memory = HostMemory;
  static constexpr size_t kRemadeAtLeast = 10;

  HostSlotPool() : memory_(*HostMemory::Create(16 * MemorySegment::PageBytes())) {
    for (uint32_t i = 0; i < memory_->segment_count(); ++i) ids_.insert(memory_->Info(i).id);
  }

  Memory& memory() { return *memory_; }
  absl::Span<uint8_t> Bytes(SlotRef slot) { return memory_->Bytes(slot); }
  // Whether it serves any class.
  bool IsFresh(uint32_t segment) const {
    const HostMemory::SegmentInfo info = memory_->Info(segment);
    return !info.in_remake && !info.missing && info.slots == 0;
  }
  // Some segment, if nobody uses it. Each third one fails to get memory and is tried again when
  // chance comes back to it.
  void RemakeOne(std::mt19937_64* random) {
    const auto index = static_cast<uint32_t>((*random)() % memory_->segment_count());
    if (memory_->Info(index).slots_used > 0) return;
    memory_->BeginRemake(index).reset();
    if ((*random)() % 3 == 0) return memory_->FinishRemake(index, nullptr);
    memory_->FinishRemake(index, *HostMemory::MakeSegment(memory_->SegmentBytes(index)));
    ASSERT_TRUE(ids_.insert(memory_->Info(index).id).second);
    ++remade_;
  }
  size_t remade() const { return remade_; }

 private:
  const std::unique_ptr<HostMemory> memory_;
  std::set<uint64_t> ids_;
  size_t remade_ = 0;
};

// An emulated device's memory can be looked into.
class DeviceSlotPool {
 public:
  using Memory = DeviceMemory;
  static constexpr size_t kRemadeAtLeast = 0;

  DeviceSlotPool()
      : device_(kernels::EmulatedDevice::Options{}),
        memory_(*DeviceMemory::Create(&device_, 16 * MemorySegment::PageBytes())) {}

  Memory& memory() { return *memory_; }
  absl::Span<uint8_t> Bytes(SlotRef slot) {
    return {reinterpret_cast<uint8_t*>(memory_->Address(slot)),
            memory_->Info(slot.segment).slot_class.slot_bytes};
  }
  bool IsFresh(uint32_t segment) const { return memory_->Info(segment).slots_used == 0; }
  void RemakeOne(std::mt19937_64* /*random*/) {}
  size_t remade() const { return 0; }

 private:
  kernels::EmulatedDevice device_;
  const std::unique_ptr<DeviceMemory> memory_;
};

using SlotPools = ::testing::Types<HostSlotPool, DeviceSlotPool>;

}  // namespace cairn::node
