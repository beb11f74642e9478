#include <cuda_runtime.h>

#include <memory>
#include <string>

#include "kernels/device/cuda_device.h"
#include "kernels/gpu/cuda_kernels.h"
#include "tests/gpu/backend.h"
#include "tests/gpu/floor_kernels.h"
#include "tests/gpu/probe_kernel.h"

namespace cairn::gpu_check {
namespace {

Problem Say(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return "";
  return std::string(call) + ": " + cudaGetErrorString(error);
}

cudaStream_t Of(kernels::Stream stream) { return static_cast<cudaStream_t>(stream.handle); }

Problem LaunchOnCuda(const ProbeParams& params, kernels::Stream stream) {
  return simt::Launch<kernels::ProbeKernel>(
      {Of(stream)}, {kProbeBlocks, 1, kernels::ProbeKernel::kSharedBytes}, params);
}

// A stream, two events and a graph of one measurement.
class Timing {
 public:
  ~Timing() {
    if (graph_exec_ != nullptr) cudaGraphExecDestroy(graph_exec_);
    if (graph_ != nullptr) cudaGraphDestroy(graph_);
    if (begin_ != nullptr) cudaEventDestroy(begin_);
    if (end_ != nullptr) cudaEventDestroy(end_);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  Problem Run(const std::vector<Step>& steps, uint32_t replays, bool as_graph, double* seconds) {
    Problem problem = Prepare();
    if (problem.empty() && as_graph) problem = Capture(steps);
    if (problem.empty()) problem = Once(steps);  // The first one is not counted.
    if (problem.empty()) problem = Say(cudaEventRecord(begin_, stream_), "cudaEventRecord");
    for (uint32_t i = 0; i < replays && problem.empty(); ++i) problem = Once(steps);
    if (problem.empty()) problem = Say(cudaEventRecord(end_, stream_), "cudaEventRecord");
    if (problem.empty()) problem = Say(cudaEventSynchronize(end_), "cudaEventSynchronize");
    float milliseconds = 0;
    if (problem.empty()) {
      problem = Say(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
    }
    *seconds = static_cast<double>(milliseconds) / 1e3 / replays;
    return problem;
  }

 private:
  Problem Prepare() {
    Problem problem =
        Say(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    if (problem.empty()) problem = Say(cudaEventCreate(&begin_), "cudaEventCreate");
    if (problem.empty()) problem = Say(cudaEventCreate(&end_), "cudaEventCreate");
    return problem;
  }

  Problem Give(const std::vector<Step>& steps) {
    Problem problem;
    for (size_t i = 0; i < steps.size() && problem.empty(); ++i) problem = steps[i]({stream_});
    return problem;
  }

  Problem Capture(const std::vector<Step>& steps) {
    Problem problem = Say(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal),
                          "cudaStreamBeginCapture");
    if (!problem.empty()) return problem;
    problem = Give(steps);
    const Problem ended = Say(cudaStreamEndCapture(stream_, &graph_), "cudaStreamEndCapture");
    if (problem.empty()) problem = ended;
    if (problem.empty()) {
      problem = Say(cudaGraphInstantiate(&graph_exec_, graph_, 0), "cudaGraphInstantiate");
    }
    return problem;
  }

  Problem Once(const std::vector<Step>& steps) {
    if (graph_exec_ == nullptr) return Give(steps);
    return Say(cudaGraphLaunch(graph_exec_, stream_), "cudaGraphLaunch");
  }

  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t graph_exec_ = nullptr;
};

class CudaBackend final : public Backend {
 public:
  CudaBackend(BackendFacts facts, std::unique_ptr<kernels::Device> device)
      : device_(std::move(device)) {
    facts_ = std::move(facts);
  }

  kernels::Device* device() override { return device_.get(); }
  kernels::GpuKernels* kernels() override { return &kernels_; }
  simt::emulated::MemoryRegistry* registry() override { return nullptr; }
  LaunchProbe probe() override { return &LaunchOnCuda; }

  Problem Read(const std::byte* from, uint64_t bytes, uint32_t* sink,
               kernels::Stream stream) override {
    return simt::Launch<kernels::ReadFloorKernel>({Of(stream)}, Shape(), {from, bytes / 16, sink});
  }
  Problem ReadRuns(const std::byte* from, const uint32_t* order, uint64_t runs, uint32_t run_bytes,
                   uint32_t* sink, kernels::Stream stream) override {
    return simt::Launch<kernels::ReadRunsKernel>({Of(stream)}, Shape(),
                                                 {from, order, runs, run_bytes / 16, sink});
  }
  Problem Copy(std::byte* to, const std::byte* from, uint64_t bytes,
               kernels::Stream stream) override {
    return simt::Launch<kernels::CopyFloorKernel>({Of(stream)}, Shape(), {from, to, bytes / 16});
  }
  Problem Fill(FillKind kind, std::byte* to, uint64_t bytes, kernels::Stream stream) override {
    return simt::Launch<kernels::FillKernel>(
        {Of(stream)}, Shape(), kernels::FillParams(kind == FillKind::kBfloat16, to, bytes));
  }
  Problem PlainCopy(kernels::CopyDirection direction, std::byte* to, const std::byte* from,
                    uint64_t bytes, kernels::Stream stream) override {
    cudaMemcpyKind kind = cudaMemcpyDeviceToDevice;
    if (direction == kernels::CopyDirection::kHostToDevice) kind = cudaMemcpyHostToDevice;
    if (direction == kernels::CopyDirection::kDeviceToHost) kind = cudaMemcpyDeviceToHost;
    return Say(cudaMemcpyAsync(to, from, bytes, kind, Of(stream)), "cudaMemcpyAsync");
  }

  Problem AllocatePinned(uint64_t bytes, std::byte** memory) override {
    void* made = nullptr;
    const Problem problem = Say(cudaMallocHost(&made, bytes), "cudaMallocHost");
    *memory = static_cast<std::byte*>(made);
    return problem;
  }
  void FreePinned(std::byte* memory) override { cudaFreeHost(memory); }

  Problem Time(const std::vector<Step>& steps, uint32_t replays, bool as_graph,
               double* seconds) override {
    return Timing().Run(steps, replays, as_graph, seconds);
  }

 private:
  simt::LaunchShape Shape() const { return kernels::FloorShape(facts_.processors); }

  const std::unique_ptr<kernels::Device> device_;
  kernels::CudaKernels kernels_;
};

}  // namespace

Problem MakeCudaBackend(int ordinal, std::unique_ptr<Backend>* backend) {
  std::unique_ptr<kernels::Device> device;
  Problem problem = kernels::MakeCudaDevice(ordinal, &device);
  if (problem.empty()) problem = Say(cudaSetDevice(ordinal), "cudaSetDevice");
  cudaDeviceProp properties = {};
  if (problem.empty()) {
    problem = Say(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties");
  }
  if (!problem.empty()) return problem;
  BackendFacts facts = {device->facts().name, static_cast<uint32_t>(properties.multiProcessorCount),
                        static_cast<uint64_t>(properties.l2CacheSize), false};
  *backend = std::make_unique<CudaBackend>(std::move(facts), std::move(device));
  return "";
}

}  // namespace cairn::gpu_check
