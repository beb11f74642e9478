// DeviceFiller: copies blocks from host memory to the device, those that the store wants there.
//
// A mover: one thread calls Step; it knows neither threads nor clocks. A batch is one wait for the
// device. When the device fails it tells the store, once, and has nothing to do any more. Borrows
// tier and store, which must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cache_node/store/block_store.h"
#include "cache_node/tiers/device/device_tier.h"

namespace cairn::node {

class DeviceFiller {
 public:
  DeviceFiller(DeviceTier* tier, BlockStore* store) : tier_(tier), store_(store) {}

  // Copies some blocks. False: none waits; wait for Signals::uploads.
  bool Step();

 private:
  static constexpr size_t kBlocksPerStep = 64;
  static constexpr uint64_t kBytesPerStep = uint64_t{32} << 20;

  DeviceTier* const tier_;
  BlockStore* const store_;
  bool out_ = false;
};

}  // namespace cairn::node
