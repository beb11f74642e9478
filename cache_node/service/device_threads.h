// DeviceThreads: the threads that run the movers of the device (cache_node/spill).
//
// One copies to the device and gives way to other threads, one copies back, as readers wait for it.
// Each may wait for the device as long as that takes, and nothing else waits for them. Borrows all,
// which must outlive it.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "cache_node/service/device_bells.h"
#include "cache_node/store/block_store.h"
#include "cache_node/tiers/device/device_tier.h"

namespace cairn::node {

class DeviceThreads {
 public:
  // A thread that found nothing to do looks again after so long, whatever it was told.
  static constexpr absl::Duration kIdle = absl::Milliseconds(200);

  // Starts them.
  DeviceThreads(DeviceTier* tier, BlockStore* store, DeviceBells* bells);
  // Ends them, when the device has answered what is under way.
  ~DeviceThreads();

  DeviceThreads(const DeviceThreads&) = delete;
  DeviceThreads& operator=(const DeviceThreads&) = delete;

 private:
  void Fill();
  void Load();

  DeviceTier* const tier_;
  BlockStore* const store_;
  DeviceBells* const bells_;
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;
};

}  // namespace cairn::node
