#include "cache_node/service/node_device.h"

#include "absl/strings/str_cat.h"
#include "kernels/device/cuda_device.h"
#include "kernels/device/emulated_device.h"

namespace cairn::node {

absl::Status NodeDevice::Open(const DeviceConfig& config, std::unique_ptr<NodeDevice>* device) {
  if (!config.on()) return absl::OkStatus();
  std::unique_ptr<kernels::Device> opened;
  if (config.emulated()) {
    kernels::EmulatedDevice::Options options;
    options.memory_bytes = config.bytes.bytes();
    opened = std::make_unique<kernels::EmulatedDevice>(options);
  } else {
    const kernels::Problem problem = kernels::MakeCudaDevice(config.CudaOrdinal(), &opened);
    if (!problem.empty()) return absl::FailedPreconditionError(absl::StrCat("--device=", problem));
  }
  absl::StatusOr<std::unique_ptr<DeviceTier>> tier =
      DeviceTier::Open(std::move(opened), config.bytes.bytes());
  if (!tier.ok()) {
    return absl::FailedPreconditionError(absl::StrCat("--device=", config.device,
                                                      " --device-bytes=", config.bytes.ToString(),
                                                      ": ", tier.status().message()));
  }
  *device = std::make_unique<NodeDevice>(*std::move(tier));
  return absl::OkStatus();
}

void NodeDevice::SetSignals(BlockStore::Signals* signals) {
  signals->uploads = [this] { bells_.uploads.Ring(); };
  signals->device_loads = [this] { bells_.loads.Ring(); };
}

void NodeDevice::Start(BlockStore* store, const StoreCounters* counters, Metrics* metrics) {
  metrics_.emplace(metrics, store, counters, tier_.get());
  threads_.emplace(tier_.get(), store, &bells_);
}

void NodeDevice::Stop() {
  threads_.reset();
  metrics_.reset();
}

}  // namespace cairn::node
