// DeviceLoader: copies blocks from the device into the slots of host memory that wait for them.
//
// A mover: one thread calls Step; several may run beside each other. Every segment's digest is
// checked against the block's key: what differs is damage, never a block. Borrows tier and store,
// which must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cache_node/store/block_store.h"
#include "cache_node/tiers/device/device_tier.h"

namespace cairn::node {

class DeviceLoader {
 public:
  DeviceLoader(DeviceTier* tier, BlockStore* store) : tier_(tier), store_(store) {}

  // Loads some blocks. False: none waits; wait for Signals::device_loads.
  bool Step();

 private:
  static constexpr size_t kBlocksPerStep = 32;
  static constexpr uint64_t kBytesPerStep = uint64_t{16} << 20;

  DeviceTier* const tier_;
  BlockStore* const store_;
};

}  // namespace cairn::node
