// Backend: a device, its kernels, and what a bench needs besides: floors and times.
//
// The emulated one does all of it on the CPU, so that the driver itself is tested where there is no
// GPU; its times mean nothing and are reported by nobody.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/device/device.h"
#include "kernels/gpu/gpu_kernels.h"
#include "kernels/problem.h"
#include "kernels/simt/memory_registry.h"
#include "tests/gpu/probe.h"

namespace cairn::gpu_check {

using kernels::Problem;

struct BackendFacts {
  std::string name;
  uint32_t processors = 1;
  uint64_t second_level_bytes = 0;  // Of the cache that all processors share.
  bool is_emulated = false;
};

// Gives work to a stream.
using Step = std::function<Problem(kernels::Stream stream)>;

enum class FillKind : uint32_t { kBfloat16, kFloat8 };

class Backend {
 public:
  virtual ~Backend() = default;

  const BackendFacts& facts() const { return facts_; }
  virtual kernels::Device* device() = 0;
  virtual kernels::GpuKernels* kernels() = 0;
  // Null but for the emulated one.
  virtual simt::emulated::MemoryRegistry* registry() = 0;

  // Null where probes run on the CPU.
  virtual LaunchProbe probe() { return nullptr; }

  // --- Floors; `bytes` is a multiple of 16 ---
  // Reads all bytes and writes 4.
  virtual Problem Read(const std::byte* from, uint64_t bytes, uint32_t* sink,
                       kernels::Stream stream) = 0;
  // The same of `runs` runs of `run_bytes` (4096 at most), in the order of a list of their indices.
  virtual Problem ReadRuns(const std::byte* from, const uint32_t* order, uint64_t runs,
                           uint32_t run_bytes, uint32_t* sink, kernels::Stream stream) = 0;
  // Copies within the device.
  virtual Problem Copy(std::byte* to, const std::byte* from, uint64_t bytes,
                       kernels::Stream stream) = 0;
  // One copy of the runtime's own.
  virtual Problem PlainCopy(kernels::CopyDirection direction, std::byte* to, const std::byte* from,
                            uint64_t bytes, kernels::Stream stream) = 0;
  // Ordinary numbers, in no pattern.
  virtual Problem Fill(FillKind kind, std::byte* to, uint64_t bytes, kernels::Stream stream) = 0;
  // Memory as the runtime pins it for itself.
  virtual Problem AllocatePinned(uint64_t bytes, std::byte** memory) = 0;
  virtual void FreePinned(std::byte* memory) = 0;

  // Seconds that all steps take, one after another, as the mean of `replays` after a first one: a
  // captured graph, or, where steps cannot be captured, given anew each time.
  virtual Problem Time(const std::vector<Step>& steps, uint32_t replays, bool as_graph,
                       double* seconds) = 0;

 protected:
  BackendFacts facts_;
};

Problem MakeEmulatedBackend(const std::string& order, std::unique_ptr<Backend>* backend);
// Without CUDA in the build: a problem that says so.
Problem MakeCudaBackend(int ordinal, std::unique_ptr<Backend>* backend);

}  // namespace cairn::gpu_check
