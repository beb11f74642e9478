#include "tests/gpu/paged_memory.h"

namespace cairn::gpu_check {
namespace {

constexpr std::byte kUntouched{0xa5};
constexpr uint64_t kSlotGapBytes = 64;  // Between slots: what a kernel writes there is seen.

}  // namespace

PagedMemory::PagedMemory(GpuRig* rig, uint64_t segment_bytes, uint64_t segment_offset,
                         uint64_t pages) {
  const uint64_t slot_bytes = segment_offset + segment_bytes + kSlotGapBytes;
  const uint64_t slots = pages / kRegions + 1;
  for (uint64_t i = 0; i < pages; ++i) {
    pages_.push_back({i % kRegions, (slots - 1 - i / kRegions) * slot_bytes});
  }
  std::vector<kernels::WritableKvRegion> device_regions;
  for (uint64_t r = 0; r < kRegions; ++r) {
    memory_[r].assign(slots * slot_bytes, kUntouched);
    device_memory_[r] = std::make_unique<DeviceArray<std::byte>>(rig, memory_[r]);
    host_regions_.push_back({memory_[r].data(), memory_[r].size()});
    device_regions.push_back({device_memory_[r]->data(), memory_[r].size()});
  }
  device_pages_ = std::make_unique<DeviceArray<kernels::KvPage>>(rig, pages_);
  device_regions_ = std::make_unique<DeviceArray<kernels::WritableKvRegion>>(rig, device_regions);
}

void PagedMemory::Upload() {
  for (uint64_t r = 0; r < kRegions; ++r) device_memory_[r]->Write(memory_[r]);
}

Problem PagedMemory::Compare(const std::string& what) {
  for (uint64_t r = 0; r < kRegions; ++r) {
    const std::vector<std::byte> got = device_memory_[r]->Read();
    Problem problem = Difference(what + ", region " + std::to_string(r), got.data(),
                                 memory_[r].data(), got.size());
    if (!problem.empty()) return problem;
  }
  return "";
}

}  // namespace cairn::gpu_check
