#include "cache_node/tiers/device/device_tier.h"

#include <utility>
#include <vector>

#include "common/base/check.h"

namespace cairn::node {

using kernels::CopyDirection;
using kernels::Problem;

absl::StatusOr<std::unique_ptr<DeviceTier>> DeviceTier::Open(
    std::unique_ptr<kernels::Device> device, uint64_t pool_bytes) {
  absl::StatusOr<std::unique_ptr<DeviceMemory>> memory =
      DeviceMemory::Create(device.get(), pool_bytes);
  if (!memory.ok()) return memory.status();
  std::unique_ptr<DeviceTier> tier(new DeviceTier(std::move(device), *std::move(memory)));
  Problem problem = tier->MakeLane(&tier->in_);
  if (problem.empty()) problem = tier->MakeLane(&tier->out_);
  if (!problem.empty()) return absl::UnavailableError(problem);
  return tier;
}

DeviceTier::DeviceTier(std::unique_ptr<kernels::Device> device,
                       std::unique_ptr<DeviceMemory> memory)
    : device_(std::move(device)),
      memory_(std::move(memory)),
      guards_(std::make_unique<kernels::SlotGuards>(device_.get())) {}

DeviceTier::~DeviceTier() {
  guards_ = nullptr;
  EndLane(&in_);
  EndLane(&out_);
}

Problem DeviceTier::MakeLane(Lane* lane) {
  absl::MutexLock lock(&lane->mutex);
  Problem problem = device_->MakeStream(&lane->stream);
  return problem.empty() ? device_->MakeEvent(&lane->event) : problem;
}

void DeviceTier::EndLane(Lane* lane) {
  absl::MutexLock lock(&lane->mutex);
  if (lane->event.handle != nullptr) device_->DestroyEvent(lane->event);
  if (lane->stream.handle != nullptr) device_->DestroyStream(lane->stream);
}

absl::Status DeviceTier::CopyIn(absl::Span<const DeviceTransfer> transfers) {
  return Copy(&in_, CopyDirection::kHostToDevice, transfers);
}

absl::Status DeviceTier::CopyOut(absl::Span<const DeviceTransfer> transfers) {
  return Copy(&out_, CopyDirection::kDeviceToHost, transfers);
}

absl::Status DeviceTier::Copy(Lane* lane, CopyDirection direction,
                              absl::Span<const DeviceTransfer> transfers) {
  if (std::string out = problem(); !out.empty()) return absl::UnavailableError(out);
  absl::MutexLock lock(&lane->mutex);
  const Problem problem = CopyOn(lane, direction, transfers);
  if (!problem.empty()) return Fail(problem);
  for (const DeviceTransfer& transfer : transfers) {
    lane->bytes.fetch_add(transfer.host.size(), std::memory_order_relaxed);
  }
  return absl::OkStatus();
}

// What was begun of a batch that fails is waited for, as far as the device still says when it is
// over: the slots are somebody else's soon.
Problem DeviceTier::CopyOn(Lane* lane, CopyDirection direction,
                           absl::Span<const DeviceTransfer> transfers) {
  std::vector<kernels::DeviceRange> ranges;
  std::vector<kernels::DeviceCopy> copies;
  ranges.reserve(transfers.size());
  copies.reserve(transfers.size());
  const bool in = direction == CopyDirection::kHostToDevice;
  for (const DeviceTransfer& transfer : transfers) {
    ranges.push_back({transfer.device, transfer.host.size()});
    copies.push_back(
        in ? kernels::DeviceCopy{transfer.device, transfer.host.data(), transfer.host.size()}
           : kernels::DeviceCopy{transfer.host.data(), transfer.device, transfer.host.size()});
  }
  Problem problem = in ? guards_->BeforeWrite(ranges.data(), ranges.size(), lane->stream)
                       : guards_->BeforeRead(ranges.data(), ranges.size(), lane->stream);
  if (!problem.empty()) return problem;
  problem = device_->CopyBatch(direction, copies.data(), copies.size(), lane->stream);
  Problem after = in ? guards_->AfterWrite(ranges.data(), ranges.size(), lane->stream)
                     : guards_->AfterRead(ranges.data(), ranges.size(), lane->stream);
  if (problem.empty()) problem = std::move(after);
  Problem recorded = device_->Record(lane->event, lane->stream);
  if (recorded.empty()) recorded = device_->Wait(lane->event);
  return problem.empty() ? recorded : problem;
}

absl::Status DeviceTier::Fail(const Problem& problem) {
  absl::MutexLock lock(&mutex_);
  if (problem_.empty()) problem_ = problem;
  return absl::UnavailableError(problem_);
}

void DeviceTier::Pin(absl::Span<uint8_t> memory) {
  const Problem problem = device_->RegisterHost(memory.data(), memory.size());
  // Copies from there would not be what they seem: without it the device is of no use.
  if (!problem.empty()) Fail(problem).IgnoreError();
}

// A device that is out says so again; there is nothing to be done about it.
void DeviceTier::Unpin(absl::Span<uint8_t> memory) {
  const Problem problem = device_->UnregisterHost(memory.data());
  if (!problem.empty()) Fail(problem).IgnoreError();
}

DeviceTier::Stats DeviceTier::GetStats() const {
  return {.copied_in_bytes = in_.bytes.load(std::memory_order_relaxed),
          .copied_out_bytes = out_.bytes.load(std::memory_order_relaxed),
          .failed = !problem().empty()};
}

std::string DeviceTier::problem() const {
  absl::MutexLock lock(&mutex_);
  return problem_;
}

}  // namespace cairn::node
