// GpuRig: a device, its kernels and one stream, for cases that run on any backend.
//
// The first problem sticks: later calls do nothing, so that a case can go on to its end and ask
// once. Not thread-safe; the standard library and kernels/ alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/device/device.h"
#include "kernels/gpu/gpu_kernels.h"
#include "kernels/problem.h"
#include "kernels/simt/memory_registry.h"
#include "tests/gpu/probe.h"

namespace cairn::gpu_check {

using kernels::Problem;

class GpuRig {
 public:
  // `registry`: of the emulated device, null for others. `probe` launches probes there. Nothing is
  // owned.
  GpuRig(kernels::Device* device, kernels::GpuKernels* kernels,
         simt::emulated::MemoryRegistry* registry, LaunchProbe probe = nullptr);
  ~GpuRig();

  GpuRig(const GpuRig&) = delete;
  GpuRig& operator=(const GpuRig&) = delete;

  kernels::Device* device() { return device_; }
  kernels::GpuKernels* kernels() { return kernels_; }
  kernels::Stream stream() const { return stream_; }
  bool is_emulated() const { return registry_ != nullptr; }

  std::byte* Allocate(uint64_t bytes);
  void Free(std::byte* memory);
  // Over pinned staging; done when the call returns, after what the stream was given before.
  void Upload(std::byte* to, const void* from, uint64_t bytes);
  void Download(void* to, const std::byte* from, uint64_t bytes);
  // Waits for the stream.
  void Finish();
  // Gives a probe to the stream, or runs it on the CPU at once.
  Problem Probe(const ProbeParams& params);

  // Takes a call's problem; the first one stays.
  void Note(const Problem& problem);
  // The first problem, which is forgotten.
  Problem TakeProblem();

 private:
  static constexpr uint64_t kStagingBytes = 4 << 20;

  kernels::Device* const device_;
  kernels::GpuKernels* const kernels_;
  simt::emulated::MemoryRegistry* const registry_;
  const LaunchProbe probe_;
  kernels::Stream stream_;
  kernels::Event event_;
  std::byte* staging_ = nullptr;
  Problem problem_;
};

// Elements in the device's memory. With a failed rig: none.
template <class T>
class DeviceArray {
 public:
  DeviceArray(GpuRig* rig, uint64_t count)
      : rig_(rig), count_(count), memory_(rig->Allocate(count * sizeof(T))) {}
  DeviceArray(GpuRig* rig, const std::vector<T>& values) : DeviceArray(rig, values.size()) {
    Write(values);
  }
  ~DeviceArray() { rig_->Free(memory_); }

  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() { return reinterpret_cast<T*>(memory_); }
  std::byte* bytes() { return memory_; }
  void Write(const std::vector<T>& values) {
    rig_->Upload(memory_, values.data(), values.size() * sizeof(T));
  }
  std::vector<T> Read() {
    std::vector<T> values(count_);
    rig_->Download(values.data(), memory_, count_ * sizeof(T));
    return values;
  }

 private:
  GpuRig* const rig_;
  const uint64_t count_;
  std::byte* const memory_;
};

// "" or the first byte that differs.
Problem Difference(const std::string& what, const void* got, const void* expected, uint64_t bytes);

}  // namespace cairn::gpu_check
