// DeviceOptions: what the store does with a device's memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cairn::node {

struct DeviceOptions {
  // What is known of the blocks there, digests and tokens with it.
  uint64_t index_bytes_max = uint64_t{64} << 20;
  // Blocks that wait to be copied there. They are not pinned: over the bound those that wait
  // longest are forgotten.
  size_t wanted_blocks_max = 65536;
  // Blocks taken for copying and not reported: pinned. 0: a sixteenth of the pool of host memory.
  uint64_t uploading_bytes_max = 0;
};

}  // namespace cairn::node
