// PagedMemory: two regions of pages in host memory and the same on the device, for cases that write
// to pages by a table and compare all of both afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/append.h"
#include "kernels/kv_pages.h"
#include "kernels/kv_segment.h"
#include "tests/gpu/gpu_rig.h"

namespace cairn::gpu_check {

class PagedMemory {
 public:
  static constexpr uint64_t kRegions = 2;

  // `pages` of the table lie in both regions, out of order; everything begins as 0xa5.
  PagedMemory(GpuRig* rig, uint64_t segment_bytes, uint64_t segment_offset, uint64_t pages);

  // The table on the host and on the device.
  const std::vector<kernels::KvPage>& pages() const { return pages_; }
  const kernels::KvPage* device_pages() { return device_pages_->data(); }
  const kernels::WritableKvRegion* regions() const { return host_regions_.data(); }
  const kernels::WritableKvRegion* device_regions() { return device_regions_->data(); }

  // The host's bytes, to the device.
  void Upload();
  Problem Compare(const std::string& what);

  // Where a page's slot begins on the host.
  std::byte* HostSlot(uint64_t page) {
    return memory_[pages_[page].region].data() + pages_[page].offset;
  }
  static kernels::KvPage PageOutside() { return {kRegions, 0}; }
  kernels::KvPage PageBeyondItsRegion() const { return {0, memory_[0].size()}; }

 private:
  std::vector<std::byte> memory_[kRegions];
  std::unique_ptr<DeviceArray<std::byte>> device_memory_[kRegions];
  std::vector<kernels::KvPage> pages_;
  std::unique_ptr<DeviceArray<kernels::KvPage>> device_pages_;
  std::vector<kernels::WritableKvRegion> host_regions_;
  std::unique_ptr<DeviceArray<kernels::WritableKvRegion>> device_regions_;
};

}  // namespace cairn::gpu_check
