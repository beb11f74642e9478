#include "kernels/device/cuda_device.h"

#include <cuda_runtime_api.h>

#include <string>
#include <vector>

namespace cairn::kernels {
namespace {

// From this driver on batches are one call.
constexpr int kBatchDriver = 12080;

class CudaDevice final : public Device {
 public:
  CudaDevice(int ordinal, Facts facts, bool batches)
      : ordinal_(ordinal), facts_(std::move(facts)), batches_(batches) {}

  const Facts& facts() const override { return facts_; }
  Problem Allocate(uint64_t bytes, std::byte** memory) override;
  void Free(std::byte* memory) override;
  Problem RegisterHost(void* memory, uint64_t bytes) override;
  Problem UnregisterHost(void* memory) override;
  Problem MakeStream(Stream* stream) override;
  void DestroyStream(Stream stream) override;
  Problem MakeEvent(Event* event) override;
  void DestroyEvent(Event event) override;
  Problem Record(Event event, Stream stream) override;
  Problem StreamWait(Stream stream, Event event) override;
  Problem Poll(Event event, EventState* state) override;
  Problem Wait(Event event) override;
  Problem CopyBatch(CopyDirection direction, const DeviceCopy* copies, size_t count,
                    Stream stream) override;

 private:
  static cudaStream_t Of(Stream stream) { return static_cast<cudaStream_t>(stream.handle); }
  static cudaEvent_t Of(Event event) { return static_cast<cudaEvent_t>(event.handle); }
  // The runtime's current device is the thread's.
  Problem Use() const { return Say(cudaSetDevice(ordinal_), "cudaSetDevice"); }
  Problem Say(cudaError_t error, const char* call) const {
    if (error == cudaSuccess) return {};
    static_cast<void>(cudaGetLastError());  // Else the next launch would be told of it.
    return facts_.name + ": " + call + ": " + cudaGetErrorString(error);
  }
  Problem CopyOneByOne(cudaMemcpyKind kind, const DeviceCopy* copies, size_t count,
                       Stream stream) const;
  Problem CopyAtOnce(const DeviceCopy* copies, size_t count, Stream stream) const;

  const int ordinal_;
  const Facts facts_;
  const bool batches_;
};

Problem CudaDevice::Allocate(uint64_t bytes, std::byte** memory) {
  Problem problem = Use();
  if (!problem.empty()) return problem;
  void* made = nullptr;
  problem = Say(cudaMalloc(&made, bytes), "cudaMalloc");
  if (problem.empty()) {
    *memory = static_cast<std::byte*>(made);
  } else {
    problem +=
        " (" + std::to_string(bytes) + " bytes of " + std::to_string(facts_.memory_bytes) + ")";
  }
  return problem;
}

// Errors of what gives back are those of earlier work, which others are told.
void CudaDevice::Free(std::byte* memory) {
  if (Use().empty()) static_cast<void>(cudaFree(memory));
}

Problem CudaDevice::RegisterHost(void* memory, uint64_t bytes) {
  Problem problem = Use();
  if (!problem.empty()) return problem;
  return Say(cudaHostRegister(memory, bytes, cudaHostRegisterPortable), "cudaHostRegister");
}

Problem CudaDevice::UnregisterHost(void* memory) {
  Problem problem = Use();
  if (!problem.empty()) return problem;
  return Say(cudaHostUnregister(memory), "cudaHostUnregister");
}

Problem CudaDevice::MakeStream(Stream* stream) {
  Problem problem = Use();
  if (!problem.empty()) return problem;
  cudaStream_t made = nullptr;
  problem = Say(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "cudaStreamCreate");
  if (problem.empty()) stream->handle = made;
  return problem;
}

void CudaDevice::DestroyStream(Stream stream) {
  if (Use().empty()) static_cast<void>(cudaStreamDestroy(Of(stream)));
}

Problem CudaDevice::MakeEvent(Event* event) {
  Problem problem = Use();
  if (!problem.empty()) return problem;
  cudaEvent_t made = nullptr;
  // Whoever waits sleeps.
  problem = Say(cudaEventCreateWithFlags(&made, cudaEventDisableTiming | cudaEventBlockingSync),
                "cudaEventCreate");
  if (problem.empty()) event->handle = made;
  return problem;
}

void CudaDevice::DestroyEvent(Event event) {
  if (Use().empty()) static_cast<void>(cudaEventDestroy(Of(event)));
}

Problem CudaDevice::Record(Event event, Stream stream) {
  Problem problem = Use();
  if (!problem.empty()) return problem;
  return Say(cudaEventRecord(Of(event), Of(stream)), "cudaEventRecord");
}

Problem CudaDevice::StreamWait(Stream stream, Event event) {
  Problem problem = Use();
  if (!problem.empty()) return problem;
  return Say(cudaStreamWaitEvent(Of(stream), Of(event), 0), "cudaStreamWaitEvent");
}

Problem CudaDevice::Poll(Event event, EventState* state) {
  Problem problem = Use();
  if (!problem.empty()) return problem;
  const cudaError_t error = cudaEventQuery(Of(event));
  *state = error == cudaSuccess ? EventState::kDone : EventState::kPending;
  if (error == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());
    return {};
  }
  return Say(error, "cudaEventQuery");
}

Problem CudaDevice::Wait(Event event) {
  Problem problem = Use();
  if (!problem.empty()) return problem;
  return Say(cudaEventSynchronize(Of(event)), "cudaEventSynchronize");
}

Problem CudaDevice::CopyBatch(CopyDirection direction, const DeviceCopy* copies, size_t count,
                              Stream stream) {
  Problem problem = Use();
  if (!problem.empty() || count == 0) return problem;
  cudaMemcpyKind kind = cudaMemcpyDeviceToDevice;
  if (direction == CopyDirection::kHostToDevice) kind = cudaMemcpyHostToDevice;
  if (direction == CopyDirection::kDeviceToHost) kind = cudaMemcpyDeviceToHost;
  if (count == 1 || !batches_) return CopyOneByOne(kind, copies, count, stream);
  return CopyAtOnce(copies, count, stream);
}

Problem CudaDevice::CopyOneByOne(cudaMemcpyKind kind, const DeviceCopy* copies, size_t count,
                                 Stream stream) const {
  for (size_t i = 0; i < count; ++i) {
    Problem problem =
        Say(cudaMemcpyAsync(copies[i].to, copies[i].from, copies[i].bytes, kind, Of(stream)),
            "cudaMemcpyAsync");
    if (!problem.empty()) return problem;
  }
  return {};
}

Problem CudaDevice::CopyAtOnce(const DeviceCopy* copies, size_t count, Stream stream) const {
  std::vector<void*> to(count);
  std::vector<const void*> from(count);
  std::vector<size_t> bytes(count);
  for (size_t i = 0; i < count; ++i) {
    to[i] = copies[i].to;
    from[i] = copies[i].from;
    bytes[i] = copies[i].bytes;
  }
  cudaMemcpyAttributes attributes = {};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  attributes.flags = cudaMemcpyFlagPreferOverlapWithCompute;
  size_t first = 0;  // The attributes are those of all copies from it on.
  return Say(cudaMemcpyBatchAsync(to.data(), from.data(), bytes.data(), count, &attributes, &first,
                                  1, Of(stream)),
             "cudaMemcpyBatchAsync");
}

}  // namespace

Problem MakeCudaDevice(int ordinal, std::unique_ptr<Device>* device) {
  const std::string name = "cuda:" + std::to_string(ordinal);
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    return name + ": no CUDA device can be used: " + cudaGetErrorString(error);
  }
  if (ordinal < 0 || ordinal >= count) {
    return name + ": there is no such device, CUDA knows " + std::to_string(count);
  }
  cudaDeviceProp properties = {};
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, ordinal);
      error != cudaSuccess) {
    return name + ": cudaGetDeviceProperties: " + cudaGetErrorString(error);
  }
  int driver = 0;
  if (const cudaError_t error = cudaDriverGetVersion(&driver); error != cudaSuccess) {
    return name + ": cudaDriverGetVersion: " + cudaGetErrorString(error);
  }
  *device = std::make_unique<CudaDevice>(
      ordinal,
      Device::Facts{name + " " + properties.name, static_cast<uint64_t>(properties.totalGlobalMem)},
      driver >= kBatchDriver);
  return {};
}

}  // namespace cairn::kernels
