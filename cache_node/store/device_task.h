// What the movers of the device tier (cache_node/spill) are given to do, as values.
//
// Every task that was taken is reported once. Maps live as long as the store.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "cache_node/store/block_pin.h"
#include "common/base/bytes16.h"
#include "common/identity/payload_map.h"

namespace cairn::node {

// A block to be copied to the device. Let go of the pin after the report.
struct UploadTask {
  uint64_t id = 0;
  const PayloadMap* map = nullptr;
  std::vector<uint64_t> digests;  // As of RecordHasPart: which parts there are.
  std::byte* address = nullptr;   // Of the slot.
  BlockPin pin;
};

// A block to be copied back into a slot of host memory. Both are held until the report.
struct DeviceLoadTask {
  uint64_t id = 0;
  BlockKey key;
  const PayloadMap* map = nullptr;
  std::vector<uint64_t> digests;
  std::byte* address = nullptr;
  absl::Span<uint8_t> destination;  // map->block_bytes() of them.
};

}  // namespace cairn::node
