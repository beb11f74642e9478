// NodeDevice: a node's device, with all that it needs: its tier, threads, and metrics.
//
// Opened before the pool of host memory, which it pins, and the store, which borrows its memory;
// started when the store is there, and stopped before it goes. Not thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "cache_node/service/device_bells.h"
#include "cache_node/service/device_config.h"
#include "cache_node/service/device_metrics.h"
#include "cache_node/service/device_threads.h"
#include "cache_node/store/block_store.h"
#include "cache_node/tiers/device/device_tier.h"
#include "common/metrics/metrics.h"

namespace cairn::node {

class NodeDevice {
 public:
  // Stays null without a device. FAILED_PRECONDITION when there is no such device, no driver, or
  // not so much memory free on it; the message says what. REQUIRES: the configuration was checked.
  static absl::Status Open(const DeviceConfig& config, std::unique_ptr<NodeDevice>* device);

  explicit NodeDevice(std::unique_ptr<DeviceTier> tier) : tier_(std::move(tier)) {}

  // For host memory, and the store; null without a device.
  static MemoryPinner* PinnerOf(NodeDevice* device) {
    return device == nullptr ? nullptr : device->tier_.get();
  }
  static DeviceMemory* MemoryOf(NodeDevice* device) {
    return device == nullptr ? nullptr : &device->tier_->memory();
  }
  void SetSignals(BlockStore::Signals* signals);
  // Borrows all until Stop.
  void Start(BlockStore* store, const StoreCounters* counters, Metrics* metrics);
  void Stop();

 private:
  const std::unique_ptr<DeviceTier> tier_;
  DeviceBells bells_;
  std::optional<DeviceMetrics> metrics_;
  std::optional<DeviceThreads> threads_;
};

}  // namespace cairn::node
