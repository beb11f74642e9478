#include "tests/gpu/gpu_rig.h"

#include <algorithm>
#include <new>

namespace cairn::gpu_check {
namespace {

constexpr std::align_val_t kPage{4096};

}  // namespace

GpuRig::GpuRig(kernels::Device* device, kernels::GpuKernels* kernels,
               simt::emulated::MemoryRegistry* registry, LaunchProbe probe)
    : device_(device), kernels_(kernels), registry_(registry), probe_(probe) {
  staging_ = static_cast<std::byte*>(::operator new(kStagingBytes, kPage));
  Note(device_->RegisterHost(staging_, kStagingBytes));
  Note(device_->MakeStream(&stream_));
  Note(device_->MakeEvent(&event_));
}

GpuRig::~GpuRig() {
  device_->DestroyEvent(event_);
  device_->DestroyStream(stream_);
  Note(device_->UnregisterHost(staging_));
  ::operator delete(staging_, kPage);
}

std::byte* GpuRig::Allocate(uint64_t bytes) {
  std::byte* memory = nullptr;
  if (!problem_.empty()) return nullptr;
  // An empty array has an address too.
  const uint64_t taken = std::max<uint64_t>(bytes, 16);
  Note(device_->Allocate(taken, &memory));
  if (memory != nullptr && registry_ != nullptr) registry_->Add(memory, taken);
  return memory;
}

void GpuRig::Free(std::byte* memory) {
  if (memory == nullptr) return;
  device_->Free(memory);
  if (registry_ != nullptr) registry_->Remove(memory);
}

void GpuRig::Upload(std::byte* to, const void* from, uint64_t bytes) {
  for (uint64_t done = 0; done < bytes && problem_.empty();) {
    const uint64_t piece = std::min(kStagingBytes, bytes - done);
    std::memcpy(staging_, static_cast<const std::byte*>(from) + done, piece);
    const kernels::DeviceCopy copy = {to + done, staging_, piece};
    Note(device_->CopyBatch(kernels::CopyDirection::kHostToDevice, &copy, 1, stream_));
    Finish();
    done += piece;
  }
}

void GpuRig::Download(void* to, const std::byte* from, uint64_t bytes) {
  for (uint64_t done = 0; done < bytes && problem_.empty();) {
    const uint64_t piece = std::min(kStagingBytes, bytes - done);
    const kernels::DeviceCopy copy = {staging_, from + done, piece};
    Note(device_->CopyBatch(kernels::CopyDirection::kDeviceToHost, &copy, 1, stream_));
    Finish();
    std::memcpy(static_cast<std::byte*>(to) + done, staging_, piece);
    done += piece;
  }
}

void GpuRig::Finish() {
  if (!problem_.empty()) return;
  Note(device_->Record(event_, stream_));
  Note(device_->Wait(event_));
}

void GpuRig::Note(const Problem& problem) {
  if (problem_.empty()) problem_ = problem;
}

Problem GpuRig::TakeProblem() {
  Problem problem;
  std::swap(problem, problem_);
  return problem;
}

Problem Difference(const std::string& what, const void* got, const void* expected, uint64_t bytes) {
  const auto* const a = static_cast<const unsigned char*>(got);
  const auto* const b = static_cast<const unsigned char*>(expected);
  for (uint64_t i = 0; i < bytes; ++i) {
    if (a[i] != b[i]) {
      return what + ": byte " + std::to_string(i) + " of " + std::to_string(bytes) + " is " +
             std::to_string(a[i]) + ", not " + std::to_string(b[i]);
    }
  }
  return "";
}

}  // namespace cairn::gpu_check
