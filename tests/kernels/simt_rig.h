// SimtRig: runs small kernels of a test on the emulated device, in one lane order.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "kernels/simt/grid_executor.h"
#include "kernels/simt/memory_registry.h"
#include "kernels/simt/simt.h"

namespace cairn::simt {

inline const std::vector<emulated::GridExecutor::Options>& AllOrders() {
  static const auto* const orders =
      new std::vector<emulated::GridExecutor::Options>{{emulated::LaneOrder::kForward, 1},
                                                       {emulated::LaneOrder::kReverse, 1},
                                                       {emulated::LaneOrder::kRandom, 1},
                                                       {emulated::LaneOrder::kRandom, 20261130}};
  return *orders;
}

// Device memory of `count` T, aligned to 256 bytes.
template <class T>
class DeviceArray {
 public:
  DeviceArray(emulated::MemoryRegistry* registry, size_t count)
      : registry_(registry), count_(count), memory_(new Line[LinesOf(count)]) {
    std::memset(memory_.get(), 0xff, LinesOf(count) * sizeof(Line));
    registry_->Add(data(), count * sizeof(T));
  }
  DeviceArray(emulated::MemoryRegistry* registry, const std::vector<T>& values)
      : DeviceArray(registry, values.size()) {
    std::memcpy(data(), values.data(), values.size() * sizeof(T));
  }
  ~DeviceArray() { registry_->Remove(data()); }

  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() { return reinterpret_cast<T*>(memory_.get()); }
  std::vector<T> values() {
    std::vector<T> copied(count_);
    std::memcpy(copied.data(), data(), count_ * sizeof(T));
    return copied;
  }

 private:
  struct alignas(256) Line {
    unsigned char bytes[256];
  };
  static size_t LinesOf(size_t count) { return (count * sizeof(T) + 255) / 256; }

  emulated::MemoryRegistry* const registry_;
  const size_t count_;
  const std::unique_ptr<Line[]> memory_;
};

class SimtRig {
 public:
  explicit SimtRig(const emulated::GridExecutor::Options& options = {})
      : executor_(options, &registry_) {
    target_.executor = &executor_;
  }

  template <class Kernel>
  kernels::Problem Run(const LaunchShape& shape, const typename Kernel::Params& params) {
    return Launch<Kernel>(target_, shape, params);
  }

  emulated::MemoryRegistry* registry() { return &registry_; }
  emulated::GridExecutor* executor() { return &executor_; }
  emulated::LaunchReport TakeReport() { return executor_.TakeReport(); }

 private:
  emulated::MemoryRegistry registry_;
  emulated::GridExecutor executor_;
  LaunchTarget target_;
};

}  // namespace cairn::simt
