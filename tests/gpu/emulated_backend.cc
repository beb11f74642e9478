#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>

#include "kernels/device/emulated_device.h"
#include "kernels/gpu/emulated_kernels.h"
#include "kernels/simt/grid_executor.h"
#include "tests/gpu/backend.h"
#include "tests/gpu/floor_kernels.h"

namespace cairn::gpu_check {
namespace {

using simt::emulated::GridExecutor;
using simt::emulated::LaneOrder;

constexpr std::align_val_t kPage{4096};

class EmulatedBackend final : public Backend {
 public:
  explicit EmulatedBackend(const GridExecutor::Options& options)
      : executor_(options, &registry_),
        device_(kernels::EmulatedDevice::Options{}),
        kernels_(&executor_, &device_) {
    facts_ = {"emulated", 2, 1 << 16, true};
  }

  kernels::Device* device() override { return &device_; }
  kernels::GpuKernels* kernels() override { return &kernels_; }
  simt::emulated::MemoryRegistry* registry() override { return &registry_; }

  Problem Read(const std::byte* from, uint64_t bytes, uint32_t* sink,
               kernels::Stream stream) override {
    return simt::Launch<kernels::ReadFloorKernel>(Target(stream), Shape(),
                                                  {from, bytes / 16, sink});
  }
  Problem ReadRuns(const std::byte* from, const uint32_t* order, uint64_t runs, uint32_t run_bytes,
                   uint32_t* sink, kernels::Stream stream) override {
    return simt::Launch<kernels::ReadRunsKernel>(Target(stream), Shape(),
                                                 {from, order, runs, run_bytes / 16, sink});
  }
  Problem Copy(std::byte* to, const std::byte* from, uint64_t bytes,
               kernels::Stream stream) override {
    return simt::Launch<kernels::CopyFloorKernel>(Target(stream), Shape(), {from, to, bytes / 16});
  }
  Problem Fill(FillKind kind, std::byte* to, uint64_t bytes, kernels::Stream stream) override {
    return simt::Launch<kernels::FillKernel>(
        Target(stream), Shape(), kernels::FillParams(kind == FillKind::kBfloat16, to, bytes));
  }
  Problem PlainCopy(kernels::CopyDirection direction, std::byte* to, const std::byte* from,
                    uint64_t bytes, kernels::Stream stream) override {
    const kernels::DeviceCopy copy = {to, from, bytes};
    return device_.CopyBatch(direction, &copy, 1, stream);
  }

  Problem AllocatePinned(uint64_t bytes, std::byte** memory) override {
    *memory = static_cast<std::byte*>(::operator new(bytes, kPage));
    std::memset(*memory, 0, bytes);
    return device_.RegisterHost(*memory, bytes);
  }
  void FreePinned(std::byte* memory) override {
    // A failed device says so to whoever asks it next.
    static_cast<void>(device_.UnregisterHost(memory));
    ::operator delete(memory, kPage);
  }

  Problem Time(const std::vector<Step>& steps, uint32_t /*replays*/, bool /*as_graph*/,
               double* seconds) override {
    kernels::Stream stream;
    Problem problem = device_.MakeStream(&stream);
    const auto begin = std::chrono::steady_clock::now();
    for (size_t i = 0; i < steps.size() && problem.empty(); ++i) problem = steps[i](stream);
    // What was given to a stream happens before it goes.
    device_.DestroyStream(stream);
    *seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (!problem.empty()) return problem;
    kernels::Event event;
    problem = device_.MakeEvent(&event);
    if (problem.empty()) device_.DestroyEvent(event);
    return problem;
  }

 private:
  simt::LaunchTarget Target(kernels::Stream stream) {
    simt::LaunchTarget target;
    target.executor = &executor_;
    target.give = [this, stream](std::function<Problem()> work) {
      return device_.Enqueue(stream, std::move(work));
    };
    return target;
  }
  simt::LaunchShape Shape() const { return kernels::FloorShape(facts_.processors); }

  simt::emulated::MemoryRegistry registry_;
  GridExecutor executor_;
  kernels::EmulatedDevice device_;
  kernels::EmulatedKernels kernels_;
};

}  // namespace

Problem MakeEmulatedBackend(const std::string& order, std::unique_ptr<Backend>* backend) {
  GridExecutor::Options options;
  if (order == "reverse") {
    options.order = LaneOrder::kReverse;
  } else if (order == "random") {
    options.order = LaneOrder::kRandom;
  } else if (order != "forward") {
    return "order '" + order + "' is none of forward, reverse and random";
  }
  *backend = std::make_unique<EmulatedBackend>(options);
  return "";
}

}  // namespace cairn::gpu_check
